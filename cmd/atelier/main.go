// Command atelier runs media generation jobs on behalf of signed-in people.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // companies choose time zones, also on machines without a time zone database
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
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
