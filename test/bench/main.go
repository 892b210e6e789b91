// Command bench measures the program against the least that could do the same,
// in one run on one machine: only ratios mean anything.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"atelier/test/visitor"
)

// How the load looks.
const (
	connections = 16
	rounds      = 15 // short ones that take turns: the machine is never the same for long
	span        = time.Second
)

// Who asks.
const (
	email    = "bench@example.com"
	password = "correct horse"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 3 && os.Args[1] == "bare" {
		if err := bare(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "atelier-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	fmt.Println("building and starting servers with 10, 100 and 1,000 tools …")
	binary := filepath.Join(dir, "atelier")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "atelier/cmd/atelier").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, out)
	}
	targets := map[int]target{}
	for _, tools := range []int{10, 100, 1000} {
		t, err := serve(ctx, binary, filepath.Join(dir, fmt.Sprint(tools)), tools)
		if err != nil {
			return err
		}
		targets[tools] = t
	}
	page, err := fetch(targets[100].with("/api/v2/tools?limit=100"))
	if err != nil {
		return err
	}
	floor, err := serveBare(ctx, dir, page)
	if err != nil {
		return err
	}

	fmt.Printf("%d connections, %d rounds of %v each, taking turns; the median of the rounds' ratios counts\n\n", connections, rounds, span)
	missed := false
	missed = compare("GET /tools?limit=100 (personal token, SQLite)", targets[100].with("/api/v2/tools?limit=100"),
		fmt.Sprintf("bare handler, the same %d bytes", len(page)), floor, 0.5) || missed
	device, err := signIn(targets[100])
	if err != nil {
		return fmt.Errorf("sign a device in: %w", err)
	}
	missed = compare("GET /tools?limit=100 (ID token, SQLite)", device.with("/api/v2/tools?limit=100"),
		fmt.Sprintf("bare handler, the same %d bytes", len(page)), floor, 0.35) || missed
	latency("GET /me (ID token, SQLite)", device.with("/api/v2/me"))
	missed = compare("GET /tools?limit=10 of 1,000 tools", targets[1000].with("/api/v2/tools?limit=10"),
		"GET /tools?limit=10 of 10 tools", targets[10].with("/api/v2/tools?limit=10"), 0.9) || missed
	if missed {
		return errors.New("a ratio is below what it should be")
	}
	return nil
}

// compare measures two requests in turns and tells whether the ratio is below
// the least.
func compare(name string, t target, baseName string, base target, least float64) (missed bool) {
	var rates, bases, ratios []float64
	for i := range rounds {
		var a, b float64
		if i%2 == 0 {
			a, b = load(t), load(base)
		} else {
			b, a = load(base), load(t)
		}
		rates, bases, ratios = append(rates, a), append(bases, b), append(ratios, a/b)
	}
	ratio := median(ratios)
	verdict := "ok"
	if missed = ratio < least; missed {
		verdict = "BELOW"
	}
	fmt.Printf("%9.0f req/s  %s\n%9.0f req/s  %s\n%9.2f ratio, at least %.2f: %s (rounds %s)\n\n",
		median(rates), name, median(bases), baseName, ratio, least, verdict, spread(ratios))
	return missed
}

// latency prints how long one request takes while all connections are busy.
func latency(name string, t target) {
	var all []time.Duration
	for range 5 {
		_, took := measure(t)
		all = append(all, took...)
	}
	slices.Sort(all)
	at := func(share float64) time.Duration {
		return all[int(share*float64(len(all)-1))].Round(10 * time.Microsecond)
	}
	fmt.Printf("%9d answers  %s, %d connections\n%9v median, %v p99, %v longest\n\n", len(all), name, connections, at(0.5), at(0.99), at(1))
}

// signIn gives the target with the ID token of a device.
func signIn(t target) (target, error) {
	v := visitor.New(t.url)
	if err := v.SignIn(email, password); err != nil {
		return t, err
	}
	in, err := v.Device("bench")
	t.token = in.Tokens.IDToken
	return t, err
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func spread(v []float64) string { return fmt.Sprintf("%.2f to %.2f", slices.Min(v), slices.Max(v)) }

// serve starts the program with some tools and a person.
func serve(ctx context.Context, binary, dir string, tools int) (target, error) {
	manifests := filepath.Join(dir, "tools")
	if err := os.MkdirAll(manifests, 0o700); err != nil {
		return target{}, err
	}
	for i := range tools {
		text := fmt.Sprintf(`name: Benchmark tool number %04d
description: Makes a picture out of a few words and a seed, for measuring only.
tags: [image, procedural, classic]
price: {type: COST, tokens: %d}
num_results: {max: 4}
output: {type: IMG, mime_types: [image/png]}
engine: {name: image, with: {operation: gradient}}
fields: [{key: prompt, type: PROMPT, label: Prompt}]
`, i, i%9+1)
		if err := os.WriteFile(filepath.Join(manifests, fmt.Sprintf("bench-%04d.yaml", i)), []byte(text), 0o600); err != nil {
			return target{}, err
		}
	}
	tags := "image: {type: MEDIA, label: Image}\nprocedural: {type: MODEL_FAMILY, label: Procedural}\nclassic: {type: MODEL_FAMILY, label: Classic}\n"
	if err := os.WriteFile(filepath.Join(manifests, "tags.yaml"), []byte(tags), 0o600); err != nil {
		return target{}, err
	}
	env := append(os.Environ(), "ATELIER_DATA="+filepath.Join(dir, "data"), "ATELIER_CATALOG_BUILTIN=false",
		"ATELIER_LIMITS_REQUESTS_PER_MINUTE=0", "ATELIER_METRICS_LISTEN=off", "ATELIER_TOOLS="+manifests)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return target{}, err
	}
	cmd := exec.CommandContext(ctx, binary, "serve", "--listen", "127.0.0.1:0")
	cmd.Env, cmd.Stderr = env, log
	url, err := start(cmd, "atelier: ready ")
	if err != nil {
		return target{}, fmt.Errorf("start server: %w (%s)", err, log.Name())
	}
	admin := func(args ...string) (v struct{ Token string }, err error) {
		cmd := exec.CommandContext(ctx, binary, append(append([]string{"admin"}, args...), "--json")...)
		cmd.Env, cmd.Stderr = env, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return v, err
		}
		return v, json.Unmarshal(out, &v)
	}
	if _, err := admin("person", "create", "--email", email, "--password", password); err != nil {
		return target{}, err
	}
	made, err := admin("token", "create", "--email", email, "--name", "bench")
	if err != nil {
		return target{}, err
	}
	address, err := net.ResolveTCPAddr("tcp4", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return target{}, err
	}
	return target{address: address.String(), token: made.Token, url: url}, nil
}

// start starts a process and waits for the line that says it is ready.
func start(cmd *exec.Cmd, prefix string) (string, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil {
		return "", err
	}
	go func() {
		io.Copy(io.Discard, out)
		cmd.Wait()
	}()
	url, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), prefix)
	if !ok {
		return "", fmt.Errorf("unexpected %q", line[:n])
	}
	return url, nil
}

// serveBare starts a second process that does nothing but write the bytes.
func serveBare(ctx context.Context, dir string, body []byte) (target, error) {
	file := filepath.Join(dir, "body.json")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return target{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return target{}, err
	}
	address, err := start(exec.CommandContext(ctx, self, "bare", file), "bare ")
	return target{address: address, path: "/"}, err
}

// bare is the process: the fastest answer that net/http gives.
func bare(file string) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	length := strconv.Itoa(len(body))
	fmt.Println("bare", l.Addr())
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", length)
		w.Write(body)
	}))
}
