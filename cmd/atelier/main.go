// Command atelier runs media generation jobs on behalf of signed-in people.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // embeds the time zone database for machines without one, because companies choose a time zone
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal terminates the program at once
	err := runCommand(ctx, os.Args[1:], streams{
		getenv:  os.Getenv,
		environ: os.Environ(),
		stdin:   os.Stdin,
		stdout:  os.Stdout,
		stderr:  os.Stderr,
	})
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "atelier:", explainError(err))
	os.Exit(exitStatus(err))
}
