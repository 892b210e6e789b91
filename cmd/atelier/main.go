// Command atelier runs media generation jobs on behalf of signed-in people.
package main

import (
	"context"
	"errors"
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
	fmt.Fprintln(os.Stderr, "atelier:", err)
	if _, ok := errors.AsType[usageError](err); ok {
		os.Exit(2)
	}
	os.Exit(1)
}
