// In C, because Swift's `CommandLine` looks for the arguments by way of /proc and of `environ`: it finds none if /proc is
// not mounted, or if a preloaded library has moved the environment.

extern int imageworker_main(int argc, char **argv);

int main(int argc, char **argv) { return imageworker_main(argc, argv); }
