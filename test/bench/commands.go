package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// commands measures the command line against the bare HTTP calls that do the
// same: a command that makes one call, and a run whose result is saved.
func (b *bench) commands(ctx context.Context) error {
	s, err := b.serve(ctx, "commands", settings{tools: map[string]string{"tags.yaml": tags, "sketch.yaml": sketch}})
	if err != nil {
		return err
	}
	defer s.stop()
	people, err := gather(ctx, s, 1)
	if err != nil {
		return err
	}
	token := people[0].token
	dir := filepath.Join(b.dir, "client")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	start := func(name string, args ...string) func() error {
		return func() error {
			cmd := exec.CommandContext(ctx, name, args...)
			cmd.Dir = dir
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "ATELIER_SERVICE=" + s.url, "ATELIER_TOKEN=" + token}
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
			}
			return nil
		}
	}

	starts := []turn{{name: "atelier whoami", do: start(s.binary, "whoami")}, {name: "atelier version", do: start(s.binary, "version")}}
	if curl, err := exec.LookPath("curl"); err == nil {
		starts = append(starts, turn{name: "curl of GET /api/v2/me", do: start(curl, "-sSf", "-H", "Authorization: Bearer "+token, s.url+"/api/v2/me")})
	}
	if err := b.takeTurns(starts); err != nil {
		return err
	}

	j, err := s.job(token, "Sketch", words)
	if err != nil {
		return err
	}
	f, err := follow(s.creates(people, j)[0])
	if err != nil {
		return err
	}
	defer f.close()
	return b.takeTurns([]turn{
		{name: "atelier run of a tool that draws a gradient, with the result on disk", do: start(s.binary, "run", "sketch", "prompt=a red fox in the snow")},
		{name: "the bare calls: create, events, status, download, on open connections", do: func() error { return bareRun(s, f, filepath.Join(dir, "bare.png")) }},
	})
}

// bareRun creates a run, follows it, and saves its result.
func bareRun(s *server, f *follower, file string) error {
	path, _, err := f.run()
	if err != nil {
		return err
	}
	var record struct {
		Outputs []struct{ URL string }
	}
	if err := s.read(f.token, path, &record); err != nil {
		return err
	}
	if len(record.Outputs) != 1 {
		return errors.New("a run has no result")
	}
	u, err := url.Parse(record.Outputs[0].URL)
	if err != nil {
		return err
	}
	picture, err := fetch(s.with(u.RequestURI()))
	if err != nil {
		return err
	}
	return os.WriteFile(file, picture, 0o600)
}

// turn is something that is done again and again.
type turn struct {
	name string
	do   func() error
	took []time.Duration
}

// takeTurns does each several times in turns, and prints how long each took, and
// the ratio of the first to the last.
func (b *bench) takeTurns(all []turn) error {
	for range 2 * b.rounds {
		for i := range all {
			start := time.Now()
			if err := all[i].do(); err != nil {
				return err
			}
			all[i].took = append(all[i].took, time.Since(start))
		}
	}
	for _, one := range all {
		times(one.name, "times", one.took)
	}
	last := all[len(all)-1]
	fmt.Printf("%9.2f times the median of: %s\n\n", ratio(all[0].took, last.took, 0.5), last.name)
	return nil
}
