package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"atelier/test/visitor"
)

// Who asks for tools.
const (
	email    = "bench@example.com"
	password = "correct horse"
)

// tools measures reading the catalog.
func (b *bench) tools(ctx context.Context) error {
	fmt.Println("servers with 10, 100 and 1,000 tools …")
	targets := map[int]target{}
	for _, n := range []int{10, 100, 1000} {
		s, err := b.serve(ctx, fmt.Sprint("tools-", n), settings{tools: manyTools(n)})
		if err != nil {
			return err
		}
		defer s.stop()
		if _, err := s.command(ctx, "admin", "person", "create", "--email", email, "--password", password); err != nil {
			return err
		}
		out, err := s.command(ctx, "admin", "token", "create", "--email", email, "--name", "bench")
		if err != nil {
			return err
		}
		var made struct{ Token string }
		if err := json.Unmarshal(out, &made); err != nil {
			return err
		}
		targets[n] = s.target
		t := targets[n]
		t.token = made.Token
		targets[n] = t
	}
	page, err := fetch(targets[100].with("/api/v2/tools?limit=100"))
	if err != nil {
		return err
	}
	floor, err := b.serveBare(ctx, page)
	if err != nil {
		return err
	}
	base := asking(fmt.Sprintf("bare handler, the same %d bytes", len(page)), floor)
	if err := b.compare("req/s", asking("GET /tools?limit=100 (personal token, SQLite)", targets[100].with("/api/v2/tools?limit=100")), base, 0.5); err != nil {
		return err
	}
	zipped := targets[100].with("/api/v2/tools?limit=100")
	zipped.takesGzip = true
	short, err := fetch(zipped)
	if err != nil {
		return err
	}
	if err := b.compare("req/s", asking(fmt.Sprintf("GET /tools?limit=100, compressed to %d bytes", len(short)), zipped),
		asking(fmt.Sprintf("GET /tools?limit=100, %d bytes as they are", len(page)), targets[100].with("/api/v2/tools?limit=100")), 0.9); err != nil {
		return err
	}
	device, err := signIn(targets[100])
	if err != nil {
		return fmt.Errorf("sign a device in: %w", err)
	}
	if err := b.compare("req/s", asking("GET /tools?limit=100 (ID token, SQLite)", device.with("/api/v2/tools?limit=100")), base, 0.35); err != nil {
		return err
	}
	if err := b.latency("GET /me (ID token, SQLite)", device.with("/api/v2/me")); err != nil {
		return err
	}
	return b.compare("req/s", asking("GET /tools?limit=10 of 1,000 tools", targets[1000].with("/api/v2/tools?limit=10")),
		asking("GET /tools?limit=10 of 10 tools", targets[10].with("/api/v2/tools?limit=10")), 0.9)
}

// latency prints how long one request takes while all connections are busy.
func (b *bench) latency(name string, t target) error {
	var all []time.Duration
	turns := newRota(1)
	for range 5 {
		_, took, err := measure(t.address, [][]byte{t.request()}, turns, b.span)
		if err != nil {
			return err
		}
		all = append(all, took...)
	}
	times(fmt.Sprintf("%s, %d connections", name, connections), "answers", all)
	return nil
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

const tags = "image: {type: MEDIA, label: Image}\nprocedural: {type: MODEL_FAMILY, label: Procedural}\nclassic: {type: MODEL_FAMILY, label: Classic}\n"

func manyTools(n int) map[string]string {
	all := map[string]string{"tags.yaml": tags}
	for i := range n {
		all[fmt.Sprintf("bench-%04d.yaml", i)] = fmt.Sprintf(`name: Benchmark tool number %04d
description: Makes a picture out of a few words and a seed, for measuring only.
tags: [image, procedural, classic]
price: {type: COST, tokens: %d}
num_results: {max: 4}
output: {type: IMG, mime_types: [image/png]}
engine: {name: image, with: {operation: gradient}}
fields: [{key: prompt, type: PROMPT, label: Prompt}]
`, i, i%9+1)
	}
	return all
}
