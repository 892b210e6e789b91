package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"atelier/internal/cli/term"
)

// watchSignals lets a person cancel the runs of a batch. The first Ctrl-C asks
// on a terminal, and cancels otherwise; a second one cancels without an answer,
// and a third one ends the command while the service still cancels the runs.
// SIGTERM cancels at once. The returned function ends the watch.
func (b *runBatch) watchSignals(ctx context.Context, giveUp func()) (stop func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		b.handleSignals(ctx, signals, ended, giveUp)
	})
	return func() {
		signal.Stop(signals)
		close(ended)
		watching.Wait()
	}
}

func (b *runBatch) handleSignals(ctx context.Context, signals <-chan os.Signal, ended <-chan struct{}, giveUp func()) {
	for {
		select {
		case <-ended:
			return
		case s := <-signals:
			switch {
			case b.isCancelled():
				giveUp()
				return
			case s == os.Interrupt && term.IsTerminal(b.stdin) && term.IsTerminal(b.stderr):
				if b.askCancel(signals, ended) {
					b.cancelAll(ctx)
				}
			default:
				b.cancelAll(ctx)
			}
		}
	}
}

// askCancel asks whether to cancel the runs. Another Ctrl-C means yes. Runs that
// end meanwhile are saved as usual; if all have ended, the question is over.
func (b *runBatch) askCancel(signals <-chan os.Signal, ended <-chan struct{}) bool {
	defer b.display.pause()()
	what := "the run"
	if n := b.countActive(); n > 1 {
		what = fmt.Sprintf("%d runs", n)
	}
	fmt.Fprintf(b.stderr, "Cancel %s? [Y/n] ", what)
	answers := make(chan string, 1)
	go func() { // it ends with the program if nobody answers
		line, err := bufio.NewReader(b.stdin).ReadString('\n')
		if err == nil {
			answers <- strings.ToLower(strings.TrimSpace(line))
		}
	}()
	select {
	case <-ended:
		fmt.Fprintln(b.stderr)
		return false
	case <-signals:
		fmt.Fprintln(b.stderr)
		return true
	case answer := <-answers:
		return answer == "" || strings.HasPrefix(answer, "y")
	}
}

// countActive returns the number of runs that have started and not ended.
func (b *runBatch) countActive() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, t := range b.tasks {
		if t.id != "" && t.saved == nil && t.err == nil {
			n++
		}
	}
	return n
}

// cancelAll cancels the runs that have started, and keeps others from starting.
// Their tasks wait for the end as usual.
func (b *runBatch) cancelAll(ctx context.Context) {
	b.mu.Lock()
	b.cancelled = true
	var ids []string
	for _, t := range b.tasks {
		if t.id != "" && t.saved == nil && t.err == nil {
			ids = append(ids, t.id)
		}
	}
	b.mu.Unlock()
	if !b.command.JSON {
		b.display.print("cancelling…")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, id := range ids {
		if _, err := b.service.Runs.Cancel(ctx, id); err != nil {
			b.display.print(fmt.Sprintf("run %s was not cancelled: %v", id, err))
		}
	}
}
