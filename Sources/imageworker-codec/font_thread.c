// Newer versions of Pango (1.56 of Debian 13, not 1.50 of Debian 12) look for a font in a thread of the font map, and wait
// for it: start_fontconfig_thread in pangofc-fontmap.c. fork(2) does not copy the thread, so each child starts it again.
// A font map of its own would not do for a child, because it would have to open the fonts.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

extern int g_async_queue_length(void *queue);

typedef void *(*thread_function)(void *);

static const char font_thread[] = "[pango] fontconfig";
static thread_function function;
static void *queue;
/// The process that has the thread.
static pid_t owner;

/// GLib's function, for all callers in this program. It notes the thread of the fonts.
void *g_thread_new(const char *name, thread_function start, void *data) {
  void *(*original)(const char *, thread_function, void *) =
      (void *(*)(const char *, thread_function, void *))dlsym(RTLD_NEXT, "g_thread_new");
  if (name && strcmp(name, font_thread) == 0) {
    function = start;
    queue = data;
    owner = getpid();
  }
  return original(name, start, data);
}

/// Waits until the thread of the fonts waits itself, so that it holds no lock at a fork.
void codec_settle_font_thread(void) {
  // The length is negative if a thread waits for an item.
  while (function && g_async_queue_length(queue) >= 0) usleep(1000);
}

/// Starts the thread of the fonts in a child of the process that has it.
void codec_start_font_thread(void) {
  if (function && owner != getpid()) g_thread_new(font_thread, function, queue);
}
