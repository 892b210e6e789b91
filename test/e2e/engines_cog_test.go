package e2e

import (
	"bytes"
	"fmt"
	"image/color"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/client"
	"atelier/internal/engine/cog/cogtest"
	"atelier/internal/testkit/servers"
	"atelier/internal/testkit/watch"
)

// gate is where the program's media can be had, and knows what was asked for.
type gate struct {
	*httptest.Server

	mu    sync.Mutex
	to    *url.URL
	asked []string
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		g.mu.Lock()
		defer g.mu.Unlock()
		r.SetURL(g.to)
		g.asked = append(g.asked, r.In.Method+" "+r.In.URL.String())
	}}
	g.Server = httptest.NewServer(proxy)
	t.Cleanup(g.Close)
	return g
}

// lead says where the program is.
func (g *gate) lead(t *testing.T, address string) {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.to = to
}

// since gives what was asked for after the first so many.
func (g *gate) since(n int) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked[n:]
}

// parlour is an installation in front of a real Cog server, whose model was
// imported twice: files are sent along to one, and fetched by the other.
type parlour struct {
	*workshop
	cog *cogtest.Server
}

func newParlour(t *testing.T, env ...string) *parlour {
	t.Helper()
	servers.NeedShippedPrograms(t)
	p := &parlour{workshop: &workshop{site: newSite(t), tools: map[string]*client.ToolDetail{}, tokens: 1000}, cog: cogtest.Start(t, cogtest.Options{})}
	dir := t.TempDir()
	manifests, file := filepath.Join(dir, "tools"), filepath.Join(dir, "backends.yaml")
	write(t, dir, "backends.yaml", "model: {engine: cog, url: \""+p.cog.URL+"\"}\nfar: {engine: cog, url: \""+p.cog.URL+"\", files: address}\n")
	p.env = append([]string{
		"ATELIER_CATALOG_BUILTIN=false", "ATELIER_LIMITS_CREATE_PER_MINUTE=10000", "ATELIER_LIMITS_CREATE_PER_HOUR=10000",
		"ATELIER_RUNS_RETRY=100ms,200ms", "ATELIER_RUNS_LEASE=3s", "ATELIER_ENGINES_PROBE=200ms",
	}, env...)
	for _, name := range []string{"model", "far"} {
		p.do("tools", "import", name, "--backends", file, "--into", manifests)
	}
	priced(t, filepath.Join(manifests, "model.yaml"), filepath.Join(manifests, "far.yaml"))
	if v := p.do("tools", "lint", manifests, "--backends", file); v["tools"] != 2.0 {
		t.Fatalf("lint = %v", v)
	}
	p.env = append(p.env, "ATELIER_TOOLS="+manifests, "ATELIER_BACKENDS="+file)
	p.do("tools", "doctor")
	token := p.token("artist@example.com")
	p.grant("--email", "artist@example.com", p.tokens)
	p.node = p.serve()
	p.node.token = token
	p.client = connect(t, p.node.url, token)
	all := listTools(t, p.client)
	if len(all) != 2 {
		t.Fatalf("tools = %v", all)
	}
	var err error
	for _, one := range all {
		if p.tools[strings.ToLower(one.Name)], err = p.client.Tools.Get(t.Context(), one.ID); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// priced gives imported tools a price, as an operator does.
func priced(t *testing.T, files ...string) {
	t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !price.Match(text) {
			t.Fatalf("%s has no price:\n%s", file, text)
		}
		write(t, filepath.Dir(file), filepath.Base(file), price.ReplaceAllString(string(text), fmt.Sprintf("price: {type: COST, tokens: %d}\n", unit)))
	}
}

var price = regexp.MustCompile(`(?m)^price:.*\n(?:[ \t].*\n)*`)

// begin starts a run.
func (p *parlour) begin(tool string, results int, inputs map[string]any, file []byte) *client.Run {
	p.t.Helper()
	inputs["prompt"], inputs["seed"] = "a red fox", 7
	if file != nil {
		inputs["picture"] = client.FileOf("start.png", file)
	}
	run, err := startRun(p.t.Context(), p.client, p.tools[tool], results, inputs)
	if err != nil {
		p.t.Fatal(err)
	}
	return run
}

// results are what a run made, which has to succeed.
func (p *parlour) results(run *client.Run, want int) (all [][]byte) {
	p.t.Helper()
	if run = p.end(run.RequestID); run.Status != "succeeded" || len(run.Outputs) != want {
		p.t.Fatalf("run = %+v %v", run, run.Error)
	}
	for _, o := range run.Outputs {
		all = append(all, p.download(o))
	}
	return all
}

// settled fails the test unless nothing is held and so much was paid.
func (p *parlour) settled(paid int64) {
	p.t.Helper()
	if tokens, held := p.node.balance(p.node.token, ""); tokens != float64(int64(p.tokens)-paid) || held != 0 {
		p.t.Errorf("balance = %v with %v held, want %d paid", tokens, held, paid)
	}
	p.check()
}

// TestACogModel takes a model of a real Cog server to pictures, with an input
// that is sent along and one that the server fetches.
func TestACogModel(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	p := newParlour(t, "ATELIER_ENGINES_PROVENANCE=false", "ATELIER_MEDIA_URL="+g.URL)
	g.lead(t, p.node.url)
	start := plainPicture(t, 20, 10, color.NRGBA{1, 2, 3, 255})
	seen := func() int { return len(g.since(0)) }

	size := map[string]any{"width": 48, "height": 32}
	plain := p.results(p.begin("model", 3, map[string]any{"size": size}, nil), 3)
	if bytes.Equal(plain[0], plain[1]) || bytes.Equal(plain[1], plain[2]) {
		t.Error("the results are all the same")
	}
	before := seen()
	made := p.begin("model", 1, map[string]any{"size": size}, start)
	watch.Until(t, "the run ends", func() bool {
		run, err := p.client.Runs.Get(t.Context(), made.RequestID)
		return err == nil && run.HasEnded()
	})
	if asked := g.since(before); len(asked) > 0 {
		t.Errorf("the server asked for %q, want nothing: it has the file", asked)
	}
	sent := p.results(made, 1)[0]
	if bytes.Equal(sent, plain[0]) {
		t.Error("the picture makes no difference")
	}

	before = seen()
	made = p.begin("far", 1, map[string]any{"size": size, "sleep": 1}, start)
	watch.Until(t, "the server asks for the picture", func() bool { return len(g.since(before)) > 0 })
	address := strings.TrimPrefix(g.since(before)[0], "GET ")
	answers := func(at string, want int) {
		t.Helper()
		if got, err := code("GET", g.URL+at); err != nil || got != want {
			t.Errorf("GET %s = %d, %v, want %d", at, got, err, want)
		}
	}
	// The address is good while the server works, and for nobody who changes it.
	answers(address, 200)
	answers(strings.Split(address, "?")[0], 403)
	if fetched := p.results(made, 1)[0]; !bytes.Equal(fetched, sent) {
		t.Error("a file that was fetched makes another picture than one that was sent")
	}
	answers(address, 404)
	if log := p.node.stderr.String(); strings.Contains(log, address) {
		t.Error("the address is in the log")
	}
	p.settled(5 * unit)
}

// TestACogServerGoes kills the server in the middle of a run and has it back at
// once, then takes it away for longer, and cancels a run at last.
func TestACogServerGoes(t *testing.T) {
	t.Parallel()
	p := newParlour(t)
	busy := func() bool { return p.cog.Health(t) == "BUSY" }
	run := p.begin("model", 1, map[string]any{"sleep": 2}, nil)
	watch.Until(t, "the model works", busy)
	p.cog.Kill(t)
	p.cog.Restart(t)
	// What it did is lost: it is done again, or given up.
	run = p.end(run.RequestID)
	if run.Status != "succeeded" && (run.Error == nil || run.TokensCharged != 0) {
		t.Errorf("run = %+v", run)
	}
	paid := run.TokensCharged
	p.settled(paid)

	p.cog.Kill(t)
	run = p.begin("model", 1, map[string]any{}, nil)
	watch.Until(t, "whoever asks is told to wait longer", func() bool {
		now, err := p.client.Runs.Get(t.Context(), run.RequestID)
		return err == nil && now.Status == "pending" && now.RetryAfterSeconds == 10
	})
	p.cog.Restart(t)
	p.results(run, 1)
	paid += unit
	p.settled(paid)

	run = p.begin("model", 1, map[string]any{"sleep": 500}, nil)
	watch.Until(t, "the model works", busy)
	asked := time.Now()
	if _, err := p.client.Runs.Cancel(t.Context(), run.RequestID); err != nil {
		t.Fatal(err)
	}
	watch.Until(t, "the model stops", func() bool { return p.cog.Health(t) == "READY" })
	watch.Took(t, "the end of the model", time.Since(asked), 3*time.Second)
	if run = p.end(run.RequestID); run.Status != "cancelled" || run.TokensCharged != 0 {
		t.Errorf("run = %+v", run)
	}
	p.settled(paid)
}
