package subprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// look is how often the folder's size is looked at.
const look = 500 * time.Millisecond

// Run runs the program to its end. What ends it early is the context, or a
// limit; other failures of the program itself are an *Exit.
func Run(ctx context.Context, p Program) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !filepath.IsAbs(p.Path) {
		return fmt.Errorf("program: %q is no absolute path", p.Path)
	}
	if _, err := exec.LookPath(p.Path); err != nil {
		return fmt.Errorf("program: %w", err)
	}
	if p.Folder == nil {
		return errors.New("program: there is no folder to run in")
	}
	s, err := p.pipes()
	if err != nil {
		return fmt.Errorf("program: %w", err)
	}
	defer s.close()

	life, end := context.WithCancelCause(ctx)
	k := keeper{program: &p, streams: s, end: end}
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		k.keep(life)
	}()
	defer func() { // also when Line panics
		end(nil)
		<-kept
	}()
	lines(s.stdout, p.Line)
	<-kept
	return k.verdict(ctx, life)
}

// keeper starts the program and sees it to its end.
type keeper struct {
	program *Program
	streams *streams
	end     context.CancelCauseFunc

	err    error // why it did not start
	state  *os.ProcessState
	held   holding // what was in the folder at the end
	status []byte
}

// keep returns when nothing of the program runs any more.
func (k *keeper) keep(life context.Context) {
	// Where we die, the kernel kills the program. It goes by the thread that
	// started it, so the thread has to live as long as the program.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process, err := k.start()
	k.streams.started()
	if err != nil {
		k.err = fmt.Errorf("program: start: %w", err)
		k.streams.nudge()
		return
	}
	var watchers, talkers sync.WaitGroup
	exited := make(chan struct{})
	watchers.Go(func() {
		select {
		case <-life.Done():
			killGroup(process.Pid)
		case <-exited:
		}
	})
	watchers.Go(func() { k.watch(exited) })
	talkers.Go(k.streams.feed)
	talkers.Go(k.streams.listen)

	k.state, k.err = reap(process, func() {
		close(exited)
		watchers.Wait()
		killGroup(process.Pid) // what the program left running
	})
	killStrays(k.program.Folder.path)
	k.streams.nudge()
	talkers.Wait()
	k.status = k.streams.told()
	if l := k.program.Limits; l.Folder > 0 || l.File > 0 {
		k.held = k.program.Folder.held(l.Folder)
	}
}

// start starts the program in the best way that the system allows.
func (k *keeper) start() (*os.Process, error) {
	path, err := self()
	if err != nil {
		return nil, err
	}
	var process *os.Process
	for _, way := range isolation(k.program.Limits.Network) {
		process, err = os.StartProcess(path, k.program.command(), &os.ProcAttr{
			Dir:   k.program.Folder.path,
			Env:   k.program.environment(),
			Files: k.streams.far,
			Sys:   way,
		})
		if err == nil {
			return process, nil
		}
	}
	return nil, err
}

// killGroup ends all processes of the group.
func killGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) } // it fails where nobody is left

var errFolder = errors.New("its folder holds too much")

// watch looks at the folder until the program has ended.
func (k *keeper) watch(exited <-chan struct{}) {
	most := k.program.Limits.Folder
	if most <= 0 {
		return
	}
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-exited:
			return
		case <-tick.C:
		}
		if k.program.Folder.held(most).total > most {
			k.end(errFolder)
			return
		}
	}
}

// verdict says how it ended. A program that ended well while somebody wanted
// to end it has still ended well.
func (k *keeper) verdict(ctx, life context.Context) error {
	if k.err != nil {
		return k.err
	}
	if err := launched(k.status, k.program.Path); err != nil {
		return fmt.Errorf("program: start: %w", err)
	}
	e := &Exit{Code: k.state.ExitCode(), Why: "it ended with " + k.state.String(), Tail: k.streams.tail.String()}
	limits := k.program.Limits
	switch signal := k.signal(); {
	case errors.Is(context.Cause(life), errFolder), limits.Folder > 0 && k.held.total > limits.Folder:
		e.limit = true
		e.Why = errFolder.Error()
	case k.state.Success():
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case signal == syscall.SIGXFSZ, limits.File > 0 && k.held.largest >= limits.File:
		e.limit = true
		e.Why = "it wrote too large a file, and ended with " + k.state.String()
	}
	return e
}

// signal is what ended the program, 0 where it ended by itself.
func (k *keeper) signal() syscall.Signal {
	if s, ok := k.state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return s.Signal()
	}
	return 0
}
