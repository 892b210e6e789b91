package main

import (
	"errors"
	"fmt"
	"time"

	"atelier/client"
)

type watchCmd struct {
	jsonFlag
	serviceFlags
	IDs       []string `arg:"" name:"run" optional:"" help:"Ids of runs; end when they have ended (default: all runs of the account)." complete:"runs"`
	UntilIdle bool     `help:"Without ids: end when no run is pending."`
}

// Run follows runs. With ids it ends when these runs have ended, and its exit
// status says whether all have succeeded; without ids it follows all runs of the
// account until Ctrl-C.
func (c watchCmd) Run(p *program) error {
	p.patient = true
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	if len(c.IDs) > 0 {
		return c.watchRuns(p, service)
	}
	return c.watchAccount(p, service)
}

func (c watchCmd) watchRuns(p *program, service *client.Client) error {
	display := newRunDisplay(p, c.JSON, nil)
	display.start()
	type end struct {
		number int
		run    *client.Run
		err    error
	}
	ends := make(chan end)
	for i, id := range c.IDs {
		display.begin(i, id)
		go func() {
			run, err := service.Runs.Wait(p.ctx, id, display.watch(i, nil))
			ends <- end{i, run, err}
		}()
	}
	rows := make([]*client.RunRecord, len(c.IDs))
	problems := make([]error, len(c.IDs))
	for range c.IDs {
		e := <-ends
		id := c.IDs[e.number]
		switch {
		case e.err != nil:
			display.finish(e.number, "", "")
			problems[e.number] = fmt.Errorf("%s: %w", id, e.err)
			continue
		case e.run.Err() != nil:
			problems[e.number] = watchError(id, e.run)
		}
		rows[e.number] = &e.run.RunRecord
		display.finish(e.number, id+": "+string(e.run.Status), "")
	}
	display.stop()
	var printed error
	for _, row := range rows {
		switch {
		case row == nil:
		case c.JSON:
			printed = errors.Join(printed, p.printResult(true, row, ""))
		default:
			for _, o := range row.Outputs {
				fmt.Fprintln(p.stdout, o.ID)
			}
		}
	}
	return joinProblems(append(problems, printed))
}

// watchError returns the error of a run that has not succeeded.
func watchError(id string, run *client.Run) error {
	status := exitRunFailed
	if run.Status == client.RunStatusCancelled {
		status = exitCancelled
	}
	return statusError{fmt.Errorf("%s: %s", id, cleanText(run.Err().Error())), status}
}

// watchAccount prints a line for each change of a run of the account. As JSON
// each change is one object.
func (c watchCmd) watchAccount(p *program, service *client.Client) error {
	pending := map[string]bool{}
	shown := map[string]string{}
	for e, err := range service.Account.Events(p.ctx, client.AccountEventsParams{}) {
		if err != nil {
			if p.ctx.Err() != nil {
				return nil // Ctrl-C is the usual end
			}
			return err
		}
		switch e.Name {
		case "run":
			var run client.RunRecord
			if e.Decode(&run) != nil {
				continue
			}
			delete(pending, run.RequestID)
			if run.Status == client.RunStatusPending {
				pending[run.RequestID] = true
			}
			line := fmt.Sprintf("%s  %s  %s", run.RequestID, cleanText(showOptional(run.ToolName)), describeStatus(run))
			if !c.JSON && shown[run.RequestID] == line {
				continue
			}
			shown[run.RequestID] = line
			if err := p.printResult(c.JSON, run, time.Now().Format(time.TimeOnly)+"  "+line); err != nil {
				return err
			}
			if run.Status != client.RunStatusPending {
				delete(shown, run.RequestID)
			}
		case "balance": // follows the runs that were pending at the start
		default:
			continue
		}
		if c.UntilIdle && len(pending) == 0 && (e.Name == "balance" || e.Name == "run") {
			return nil
		}
	}
	return nil
}
