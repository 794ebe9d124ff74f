/* The program of the pause image: waits for a signal and reaps orphaned processes. */
#include <signal.h>
#include <unistd.h>
#include <sys/wait.h>
#include <stdlib.h>
static void end(int s){ (void)s; _exit(0); }
static void reap(int s){ (void)s; while (waitpid(-1, NULL, WNOHANG) > 0); }
int main(void){ signal(SIGINT,end); signal(SIGTERM,end); signal(SIGCHLD,reap); for(;;) pause(); }
