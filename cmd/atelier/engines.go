package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"time"

	"atelier/internal/base/config"
	"atelier/internal/base/netguard"
	"atelier/internal/catalog/catalog"
	"atelier/internal/engine"
	"atelier/internal/engine/a1111"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/builtin/imageengine"
	"atelier/internal/engine/builtin/music"
	"atelier/internal/engine/builtin/speech"
	"atelier/internal/engine/builtin/tiny"
	"atelier/internal/engine/builtin/tiny/kernel"
	"atelier/internal/engine/builtin/tiny/neural"
	"atelier/internal/engine/builtin/video"
	"atelier/internal/engine/cog"
	"atelier/internal/engine/comfyui"
	"atelier/internal/engine/execengine"
	"atelier/internal/engine/fal"
	"atelier/internal/engine/openai"
	"atelier/internal/engine/replicate"
	"atelier/internal/engine/subprocess"
)

// Names of the built-in engines. The last three need programs that must be
// installed on the system.
const (
	imageEngine  = "image"
	tinyEngine   = "tiny"
	speechEngine = "speech"
	musicEngine  = "music"
	videoEngine  = "video"
)

// requiredPrograms returns the programs and files that the built-in engines
// need, by engine name. The path is "" if a program or file was not found.
func requiredPrograms(c *config.Config) map[string][]subprocess.Requirement {
	sound := music.Requirements()
	if file := c.Engines.Soundfont; file != "" {
		sound[1].Path = file
		if _, err := os.Stat(file); err != nil {
			sound[1].Path = ""
		}
	}
	return map[string][]subprocess.Requirement{speechEngine: speech.Requirements(), musicEngine: sound, videoEngine: video.Requirements()}
}

// missingPrograms returns the programs and files that were not found.
func missingPrograms(all []subprocess.Requirement) []subprocess.Requirement {
	return slices.DeleteFunc(slices.Clone(all), func(n subprocess.Requirement) bool { return n.Path != "" })
}

// toolAvailability returns a function that decides whether the built-in tools
// of an engine are offered. A worker without the engine's programs omits the
// tools; a node that does not serve the pool of the built-in engines leaves the
// decision to the workers that do.
func toolAvailability(c *config.Config) func(engine string) catalog.Availability {
	all := requiredPrograms(c)
	return func(engine string) catalog.Availability {
		switch need, known := all[engine]; {
		case !known:
			return catalog.Available
		case !c.HasRole("worker") || !c.ServesPool(config.BuiltinPool):
			return catalog.UnknownAvailability
		case len(missingPrograms(need)) > 0:
			return catalog.Unavailable
		}
		return catalog.Available
	}
}

// engines has the engines of this node by the name that manifests use.
type engines struct {
	slots map[string]engine.Slots
	pools map[string]string // pool of each configured engine, even if this node does not serve the pool
	video *video.Engine     // nil if ffmpeg is not installed
	close []func()
}

// Close closes the connections of all engines to model servers.
func (e *engines) Close() { closeEach(e.close) }

func closeEach(all []func()) {
	for _, one := range all {
		one()
	}
}

// openEngines creates the engines of this node: the built-in ones and those of
// the configured model servers.
func (in *installation) openEngines(log *slog.Logger) (*engines, error) {
	c := in.cfg
	if err := in.setSandbox(); err != nil {
		return nil, err
	}
	parallel := func(own int) int {
		if c.Runs.Parallel > 0 {
			return c.Runs.Parallel
		}
		return own
	}
	cores := runtime.GOMAXPROCS(0)
	all := &engines{slots: map[string]engine.Slots{imageEngine: {Engine: imageengine.New(), Parallel: parallel(cores)}}}
	sketcher := tiny.New(tiny.Options{
		Open: func() (*neural.Model, error) {
			return neural.Open(kernel.Best(), workerThreads(cores, c.Engines.Threads))
		},
		Log: log, Now: time.Now,
	})
	all.slots[tinyEngine] = engine.Slots{Engine: sketcher, Parallel: 1, Trained: true} // this engine uses all cores for one picture
	all.close = append(all.close, sketcher.Close)
	have := requiredPrograms(c)
	if n := have[speechEngine]; len(missingPrograms(n)) == 0 {
		all.slots[speechEngine] = engine.Slots{Engine: speech.New(n[0].Path, speech.Options{Folder: c.Engines.Folder}), Parallel: parallel(cores)}
	}
	if n := have[musicEngine]; len(missingPrograms(n)) == 0 {
		all.slots[musicEngine] = engine.Slots{Engine: music.New(n[0].Path, n[1].Path, music.Options{Folder: c.Engines.Folder}), Parallel: parallel(cores)}
	}
	if n := have[videoEngine]; len(missingPrograms(n)) == 0 {
		all.video = video.New(n[0].Path, n[1].Path, video.Options{Folder: c.Engines.Folder})
		all.slots[videoEngine] = engine.Slots{Engine: all.video, Parallel: parallel(max(1, cores/2))}
	}
	addTestEngines(all.slots, parallel)
	all.pools = map[string]string{}
	for name, one := range all.slots {
		one.Pool = config.BuiltinPool
		all.slots[name] = one
		all.pools[name] = one.Pool
	}
	maps.DeleteFunc(all.slots, func(_ string, one engine.Slots) bool { return !c.ServesPool(one.Pool) })
	backends, err := in.readBackends()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(backends)) {
		b := backends[name]
		all.pools[name] = b.Pool
		if !c.ServesPool(b.Pool) {
			continue
		}
		e, shut, err := in.openBackend(b)
		if err != nil {
			all.Close()
			return nil, fmt.Errorf("backends: %s: %w", name, err)
		}
		all.close = append(all.close, shut)
		one := backendSlots(b, c.Runs.Parallel)
		one.Engine = e
		all.slots[name] = one
	}
	for _, name := range c.Pools {
		if !slices.Contains(slices.Collect(maps.Values(all.pools)), name) {
			all.Close()
			return nil, fmt.Errorf("pools: no engine is in the pool %s", name)
		}
	}
	return all, nil
}

// backendSlots returns the slots of a backend, without its engine. perNode is
// the setting runs.parallel. If neither it nor the backend sets a number, a
// server has one slot for all nodes together, and a program, which runs on the
// node itself, one slot on each node.
func backendSlots(b config.Backend, perNode int) engine.Slots {
	s := engine.Slots{
		Parallel: cmp.Or(b.ParallelPerNode, b.Parallel, perNode, 1),
		Limit:    b.Parallel,
		Pool:     b.Pool,
		Trained:  b.Engine != config.Exec,
	}
	if cmp.Or(b.ParallelPerNode, b.Parallel, perNode) == 0 && b.Engine != config.Exec {
		s.Limit = 1
	}
	if s.Limit > 0 {
		s.Parallel = min(s.Parallel, s.Limit)
	}
	if b.Origin != "" {
		s.Trained = b.Origin == string(catalog.Trained)
	}
	return s
}

// workerThreads returns the number of threads of the built-in picture model:
// one per core, or the configured number if it is lower. More threads than
// cores would only wait for each other.
func workerThreads(cores, wanted int) int {
	if wanted == 0 {
		return cores
	}
	return min(wanted, cores)
}

// readBackends reads the configured model servers from the file that --backends names.
// It returns nil if the setting is empty.
func (in *installation) readBackends() (map[string]config.Backend, error) {
	if in.cfg.Backends == "" {
		return nil, nil
	}
	return config.ReadBackends(in.cfg.Backends, in.getenv)
}

// openBackend creates the engine for a model server. It does not connect to
// the server.
func (in *installation) openBackend(b config.Backend) (engine.Prober, func(), error) {
	nothing := func() {}
	if b.Engine == config.Exec {
		e, err := execengine.New(execengine.Options{
			Command: b.Command,
			Env:     b.Environment,
			Folder:  in.cfg.Engines.Folder,
			Limits:  subprocess.Limits{Memory: int64(b.Memory), File: int64(b.FileBytes), Folder: int64(b.FolderBytes), Network: b.Network},
			Read:    b.Read,
			Write:   b.Write,
		})
		return e, nothing, err
	}
	client, err := in.newBackendClient(b, b.URL)
	if err != nil {
		return nil, nothing, err
	}
	addresses := b.Files == "address"
	switch b.Engine {
	case config.Cog:
		return cog.New(client, cog.Options{SendURLs: addresses}), client.Close, nil
	case config.ComfyUI:
		return comfyui.New(client, comfyui.Options{}), client.Close, nil
	case config.OpenAI:
		return openai.New(client, openai.Options{}), client.Close, nil
	case config.A1111:
		return a1111.New(client, a1111.Options{}), client.Close, nil
	case config.Replicate:
		return replicate.New(client, replicate.Options{SendURLs: addresses, Now: time.Now}), client.Close, nil
	case config.Fal:
		o := fal.Options{SendURLs: addresses}
		shut := []func(){client.Close}
		if b.Storage != "" {
			if o.Storage, err = in.newBackendClient(b, b.Storage); err != nil {
				return nil, nothing, err
			}
			shut = append(shut, o.Storage.Close)
		}
		if b.Catalog != "" {
			described := b
			if !isSameHost(b.URL, b.Catalog) {
				described.RequestHeader = nil // a catalog on another host is the provider's public one and must not receive the credentials
			}
			if o.Catalog, err = in.newBackendClient(described, b.Catalog); err != nil {
				return nil, nothing, err
			}
			shut = append(shut, o.Catalog.Close)
		}
		return fal.New(client, o), func() { closeEach(shut) }, nil
	}
	return nil, nothing, fmt.Errorf("there is no engine %s", b.Engine)
}

// isSameHost reports whether two valid URLs have the same scheme, host and
// port.
func isSameHost(a, b string) bool {
	first, err := url.Parse(a)
	second, also := url.Parse(b)
	return err == nil && also == nil && first.Scheme == second.Scheme && first.Host == second.Host
}

// newBackendClient returns an HTTP client for a model server that sends its
// credentials and fixed headers.
func (in *installation) newBackendClient(b config.Backend, at string) (*backend.Client, error) {
	header := http.Header{"User-Agent": {"Atelier/" + buildVersion()}}
	for name, value := range b.RequestHeader {
		header.Set(name, value)
	}
	return backend.New(backend.Options{
		URL: at, Header: header, Timeout: time.Duration(b.Timeout), Guard: netguard.New(in.cfg.Engines.AllowNetworks),
	})
}
