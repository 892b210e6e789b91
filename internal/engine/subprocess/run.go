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
	"time"
)

// usageInterval is the time between two measurements of the size of a job's
// folder.
const usageInterval = 500 * time.Millisecond

// Run runs the program and waits until it has ended. It kills the program if
// ctx is cancelled or a limit is exceeded. If the program itself fails, the
// error is an *Exit.
func Run(ctx context.Context, p Program) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := checkSystem(); err != nil {
		return err
	}
	if !filepath.IsAbs(p.Path) {
		return fmt.Errorf("program: %q is not an absolute path", p.Path)
	}
	if _, err := exec.LookPath(p.Path); err != nil {
		return fmt.Errorf("program: %w", err)
	}
	if p.Folder == nil {
		return errors.New("program: a working folder is required")
	}
	s, err := p.openPipes()
	if err != nil {
		return fmt.Errorf("program: %w", err)
	}
	defer s.closeAll()

	life, end := context.WithCancelCause(ctx)
	k := runningProgram{program: &p, streams: s, end: end}
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		k.runToEnd(life)
	}()
	defer func() { // deferred, so that it runs even if the callback Line panics
		end(nil)
		<-kept
	}()
	eachLine(s.stdout, p.Line)
	<-kept
	return k.exitError(ctx, life)
}

// runningProgram is a program that is running, and its outcome.
type runningProgram struct {
	program *Program
	streams *streams
	end     context.CancelCauseFunc

	err    error // why the program could not be started
	state  *os.ProcessState
	usage  folderUsage // size of the folder when the program ended
	status []byte
}

// runToEnd starts the program and returns when none of its processes is
// running any more.
func (k *runningProgram) runToEnd(life context.Context) {
	// If this process dies, the kernel kills the program. The kernel watches
	// the thread that started the program, so this thread must exist until the
	// program has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process, err := k.startProcess()
	k.streams.closeProgramEnds()
	if err != nil {
		k.err = fmt.Errorf("program: start: %w", err)
		k.streams.signalEnd()
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
	watchers.Go(func() { k.watchUsage(exited) })
	talkers.Go(k.streams.writeStdin)
	talkers.Go(k.streams.readStderr)

	k.state, k.err = waitProcess(process, func() {
		close(exited)
		watchers.Wait()
		killGroup(process.Pid) // kills processes that the program left running
	})
	killStrays(k.program.Folder.path)
	k.streams.signalEnd()
	talkers.Wait()
	k.status = k.streams.launcherStatus()
	if l := k.program.Limits; l.Folder > 0 || l.File > 0 {
		k.usage = k.program.Folder.measureUsage(l.Folder)
	}
}

// startProcess starts the program's launcher with the strongest isolation that
// the system allows.
func (k *runningProgram) startProcess() (*os.Process, error) {
	path, err := ownExecutable()
	if err != nil {
		return nil, err
	}
	var process *os.Process
	for _, way := range startAttrs(k.program.Limits.Network) {
		process, err = os.StartProcess(path, k.program.launcherArgs(), &os.ProcAttr{
			Dir:   k.program.Folder.path,
			Env:   k.program.environmentOf(),
			Files: k.streams.far,
			Sys:   way,
		})
		if err == nil {
			return process, nil
		}
	}
	return nil, err
}

var errFolder = errors.New("the job's working folder exceeded the size limit")

// watchUsage measures the size of the folder at intervals until the program
// has ended. It kills the program if the folder exceeds its limit.
func (k *runningProgram) watchUsage(exited <-chan struct{}) {
	most := k.program.Limits.Folder
	if most <= 0 {
		return
	}
	tick := time.NewTicker(usageInterval)
	defer tick.Stop()
	for {
		select {
		case <-exited:
			return
		case <-tick.C:
		}
		if k.program.Folder.measureUsage(most).total > most {
			k.end(errFolder)
			return
		}
	}
}

// exitError returns the program's error, or nil if it succeeded. A program
// that succeeds just before it would be killed counts as successful.
func (k *runningProgram) exitError(ctx, life context.Context) error {
	if k.err != nil {
		return k.err
	}
	if err := parseLaunchError(k.status, k.program.Path); err != nil {
		return fmt.Errorf("program: start: %w", err)
	}
	e := &Exit{Code: k.state.ExitCode(), Why: "the program ended with " + k.state.String(), Tail: k.streams.tail.String()}
	limits := k.program.Limits
	switch {
	case errors.Is(context.Cause(life), errFolder), limits.Folder > 0 && k.usage.total > limits.Folder:
		e.limit = true
		e.Why = errFolder.Error()
	case k.state.Success():
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case endedByFileLimit(k.state), limits.File > 0 && k.usage.largest >= limits.File:
		e.limit = true
		e.Why = "the program exceeded the file size limit and ended with " + k.state.String()
	}
	return e
}
