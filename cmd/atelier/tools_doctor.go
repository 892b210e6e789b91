package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/engine/builtin/tiny/kernel"
	"atelier/internal/engine/builtin/tiny/neural"
)

// probeTime is the time limit of the health check of a model server.
const probeTime = 10 * time.Second

var errChecksFailed = errors.New("some engines or tools cannot run")

type doctorCmd struct{ jsonFlag }

// engineCheck is the result of checking an engine, or a tool whose engine is
// missing.
type engineCheck struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	State   string `json:"state"` // ok, missing (not usable on this node) or away (does not respond)
	Detail  string `json:"detail"`
	Install string `json:"install,omitempty"` // packages that provide the missing programs
}

func (c doctorCmd) Run(p *program) error {
	all, err := p.checkEngines(p.ctx)
	if err != nil {
		return err
	}
	ill := slices.ContainsFunc(all, func(f engineCheck) bool { return f.State != "ok" })
	if c.JSON {
		err = p.printResult(true, map[string]any{"engines": all}, "")
	} else {
		rows := [][]string{{"NAME", "KIND", "STATE", "DETAIL"}}
		for _, f := range all {
			rows = append(rows, []string{f.Name, f.Kind, f.State, f.Detail})
		}
		err = p.printTable(rows)
	}
	if err == nil && ill {
		err = errChecksFailed
	}
	return err
}

// checkEngines checks every built-in engine, every configured model server,
// and that the engine of every tool exists.
func (p *program) checkEngines(ctx context.Context) ([]engineCheck, error) {
	engines, err := p.openEngines(slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer engines.Close()
	backends, err := p.readBackends()
	if err != nil {
		return nil, err
	}
	k := kernel.Best()
	all := []engineCheck{
		{Name: "image", Kind: "shipped", State: "ok", Detail: "built in"},
		checkPictureModel(k, func() (*neural.Model, error) { return neural.Open(k, 1) }),
	}
	all = append(all, p.describeSandbox())
	have := requiredPrograms(p.cfg)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		f := engineCheck{Name: name, Kind: "shipped", State: "ok"}
		var found, packages []string
		for _, n := range have[name] {
			found = append(found, n.Path)
		}
		f.Detail = strings.Join(found, ", ")
		if lacks := missingPrograms(have[name]); len(lacks) > 0 {
			f.State = "missing"
			f.Detail = ""
			for _, n := range lacks {
				f.Detail += n.Name + " is not installed; "
				packages = append(packages, n.Package)
			}
			f.Install = strings.Join(slices.Compact(slices.Sorted(slices.Values(packages))), " ")
			f.Detail += "apt-get install " + f.Install
		}
		all = append(all, f)
	}
	for _, name := range slices.Sorted(maps.Keys(backends)) {
		f := engineCheck{Name: name, Kind: backends[name].Engine, State: "ok", Detail: backends[name].URL}
		if f.Detail == "" {
			f.Detail = backends[name].Command[0]
		}
		if served, ok := engines.slots[name]; !ok {
			f.Detail += ": not checked, because this node does not serve the pool " + engines.pools[name]
		} else if err := probeEngine(ctx, served.Engine); err != nil {
			f.State = "away"
			f.Detail = f.Detail + ": " + err.Error()
		}
		all = append(all, f)
	}
	homeless, err := p.checkToolEngines(engines)
	return append(all, homeless...), err
}

// checkPictureModel opens the built-in picture model, which verifies the
// checksums of its weights.
func checkPictureModel(k kernel.Kernel, open func() (*neural.Model, error)) engineCheck {
	f := engineCheck{Name: "tiny", Kind: "shipped", State: "ok", Detail: "built in, computes with " + k.String()}
	m, err := open()
	if err != nil {
		f.State = "missing"
		f.Detail = err.Error()
		return f
	}
	m.Close()
	return f
}

func probeEngine(ctx context.Context, e engine.Engine) error {
	server, ok := e.(engine.Prober)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return server.Probe(ctx)
}

// checkToolEngines returns a failed check for each tool whose engine is not
// configured. Flows need none: their steps run on the engines of other tools.
func (p *program) checkToolEngines(have *engines) ([]engineCheck, error) {
	from, err := manifestSources(p.cfg, "")
	if err != nil {
		return nil, err
	}
	set, err := catalog.Read(from...)
	if err != nil {
		return nil, err
	}
	var all []engineCheck
	for slug, t := range set.AllTools() {
		if _, ok := have.pools[t.Engine.Name]; !ok && !t.IsFlow() {
			all = append(all, engineCheck{
				Name: slug, Kind: "tool", State: "missing",
				Detail: fmt.Sprintf("needs the engine %s, which is not configured; add it to the file that --backends names", t.Engine.Name),
			})
		}
	}
	return all, nil
}
