package comfyui_test

import (
	"net"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/enginetest"
)

// Not parallel: the suite counts goroutines.
func TestConformance(t *testing.T) {
	many := job(t)
	many.NumResults = 3
	batch := job(t)
	batch.With = with(t, portrait(), and(bound, dict{"num_results": []string{"5.batch_size"}}))
	batch.NumResults = 3
	for _, tt := range []struct {
		name   string
		o      comfyuitest.Options
		faults comfyuitest.Faults
		job    engine.Job
	}{
		{"a prompt for each result", comfyuitest.Options{}, comfyuitest.Faults{}, many},
		{"a batch", comfyuitest.Options{}, comfyuitest.Faults{}, batch},
		{"a file", comfyuitest.Options{}, comfyuitest.Faults{}, reworking(t)},
		{"an old server", comfyuitest.Options{NoJobs: true, GlobalInterrupt: true, OwnIDs: true}, comfyuitest.Faults{}, many},
		{"without a socket", comfyuitest.Options{}, comfyuitest.Faults{NoSocket: true}, many},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, tt.o)
			r.server.Change(func(f *comfyuitest.Faults) { *f = tt.faults })
			c := enginetest.Case{Engine: r, Job: tt.job, Deterministic: true, Seeded: true, Settle: r.client.Close}
			enginetest.CheckEngine(t, c)
			eventually(t, "the server has nothing to do", r.server.Idle)
		})
	}
}

func TestSigns(t *testing.T) {
	r := start(t, comfyuitest.Options{})
	enginetest.CheckProgress(t, enginetest.Case{Engine: r, Job: job(t), Settle: r.client.Close}, true)
}

func TestFaults(t *testing.T) {
	trial := func(set func(*comfyuitest.Faults)) func(*testing.T) enginetest.Trial {
		return func(t *testing.T) enginetest.Trial {
			r := start(t, comfyuitest.Options{})
			r.server.Change(set)
			return enginetest.Trial{Engine: r, Job: job(t), Idle: r.server.Idle, Settle: r.client.Close}
		}
	}
	enginetest.CheckFaults(t, map[enginetest.Fault]func(*testing.T) enginetest.Trial{
		enginetest.Refuses: trial(func(f *comfyuitest.Faults) { f.Refuse = true }),
		enginetest.Fails:   trial(func(f *comfyuitest.Faults) { f.Fail = "CUDA out of memory at /opt/models" }),
		enginetest.Busy:    trial(func(f *comfyuitest.Faults) { f.Busy = true }),
		enginetest.Away:    away,
		enginetest.Loses:   trial(func(f *comfyuitest.Faults) { f.Forget = true }),
		enginetest.Garbles: trial(func(f *comfyuitest.Faults) { f.Garble = "/history" }),
		enginetest.Breaks:  trial(func(f *comfyuitest.Faults) { f.View = "breaks" }),
		enginetest.Floods:  trial(func(f *comfyuitest.Faults) { f.View = "floods" }),
		enginetest.Drips:   trial(func(f *comfyuitest.Faults) { f.View = "drips" }),
		enginetest.Hangs:   trial(func(f *comfyuitest.Faults) { f.Stuck = true }),
		enginetest.TimeIsUp: func(t *testing.T) enginetest.Trial {
			r := start(t, comfyuitest.Options{Step: 300 * time.Millisecond})
			return enginetest.Trial{Engine: r, Job: job(t), Idle: r.server.Idle, Settle: r.client.Close}
		},
		enginetest.Restarts: restarts,
		enginetest.Fewer:    trial(func(f *comfyuitest.Faults) { f.Nothing = true }),
	}, nil)
}

func away(t *testing.T) enginetest.Trial {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	r := rig{}.to(t, "http://"+l.Addr().String())
	return enginetest.Trial{Engine: r, Job: job(t), Settle: r.client.Close}
}

// restarts has the server go away while it samples.
func restarts(t *testing.T) enginetest.Trial {
	r := start(t, comfyuitest.Options{Step: 50 * time.Millisecond})
	done := make(chan error, 1)
	go func() {
		// Not while the prompt is being sent: the job would be over before the
		// server is back.
		eventually(t, "it is looked for", func() bool { return r.called("GET", "/queue") > 0 })
		done <- r.server.Restart()
	}()
	return enginetest.Trial{Engine: r, Job: job(t), After: job(t), Settle: func() {
		if err := <-done; err != nil {
			t.Errorf("restart: %v", err)
		}
		r.client.Close()
		r.server.Stop()
	}}
}
