// As in imageworker/main.c: Swift finds no arguments if /proc is not mounted.

extern int imageworker_plain_main(int argc, char **argv);

int main(int argc, char **argv) { return imageworker_plain_main(argc, argv); }
