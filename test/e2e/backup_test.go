package e2e

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// embeddedStage is an installation with everything in its data folder, and a
// person with tokens. Deleted files are swept soon.
func embeddedStage(t *testing.T) (s *site, token string) {
	t.Helper()
	needOneProcess(t, "atelier backup copies an installation that is in one folder")
	s = newStageOn(t, "", "ATELIER_LIMITS_CREATE_PER_MINUTE=1000000", "ATELIER_LIMITS_CREATE_PER_HOUR=1000000", "ATELIER_LIMITS_ACTIVE_RUNS=100000",
		"ATELIER_RETENTION_ORPHANS=10s", "ATELIER_RETENTION_EVERY=1s")
	token = s.token("anna@example.com")
	s.grant("--email", "anna@example.com", 100_000_000)
	return s, token
}

// restore makes a new installation of an archive.
func (s *site) restore(archive string, flags ...string) *site {
	s.t.Helper()
	other := &site{t: s.t, data: filepath.Join(s.t.TempDir(), "restored"), env: s.env}
	other.do(append([]string{"restore", archive}, flags...)...)
	return other
}

// checkFiles fails the test unless every row and file is as it should be.
func (s *site) checkFiles() {
	s.t.Helper()
	if v := s.do("check", "--files"); fmt.Sprint(v["violations"]) != "[]" {
		s.t.Errorf("violations: %v", v)
	}
}

// creates are how long creates took, beside a backup and without one.
type creates struct {
	mu      sync.Mutex
	backing atomic.Bool
	took    map[bool][]time.Duration
}

func (c *creates) note(beside bool, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took[beside] = append(c.took[beside], took)
}

// at gives a quantile.
func (c *creates) at(beside bool, quantile float64) time.Duration {
	all := slices.Sorted(slices.Values(c.took[beside]))
	if len(all) == 0 {
		return 0
	}
	return all[int(quantile*float64(len(all)-1))]
}

// load has people create runs, and upload and delete files, until ctx ends. It
// keeps to a pace, so that the installation does not outgrow the test.
func load(ctx context.Context, n *node, token string, pace time.Duration) (seen *creates, wait func()) {
	n.t.Helper()
	n.token = token
	seen = &creates{took: map[bool][]time.Duration{}}
	what := n.order(2, pause(50*time.Millisecond), picture, picture)
	what.Inputs["picture"] = map[string]any{"kind": "MULTIPART", "file_index": 0}
	photo := plainPicture(n.t, 160, 120, color.NRGBA{200, 100, 50, 255})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for tick := time.Tick(pace); ctx.Err() == nil; <-tick {
				beside, began := seen.backing.Load(), time.Now()
				a, err := n.create(token, "", what, photo)
				if err != nil { // of a connection, on a busy machine; what was answered counts
					n.t.Logf("create: %v", err)
					continue
				}
				if a.StatusCode != http.StatusAccepted {
					n.t.Errorf("create = %d %s", a.StatusCode, a.body)
					return
				}
				if beside == seen.backing.Load() {
					seen.note(beside, time.Since(began))
				}
			}
		})
		group.Go(func() {
			who := caller{n: n, token: token, client: &http.Client{Timeout: 30 * time.Second}}
			for tick := time.Tick(pace); ctx.Err() == nil; <-tick {
				status, _, id, err := who.upload(context.WithoutCancel(ctx), photo)
				if err != nil {
					n.t.Logf("upload: %v", err)
					continue
				}
				if status != http.StatusCreated {
					n.t.Errorf("upload = %d", status)
					return
				}
				if rand.IntN(2) == 0 {
					continue
				}
				res, err := who.do(context.WithoutCancel(ctx), "DELETE", "/api/v2/uploads/"+id, "", nil)
				if err != nil {
					n.t.Logf("delete: %v", err)
					continue
				}
				res.Body.Close()
				if res.StatusCode != http.StatusNoContent {
					n.t.Errorf("delete = %d", res.StatusCode)
					return
				}
			}
		})
	}
	return seen, group.Wait
}

// TestBackupsUnderLoad copies an installation again and again while people
// create, upload and delete. Every copy is whole. ATELIER_TEST_BACKUPS says how
// often.
func TestBackupsUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := 2
	if text := os.Getenv("ATELIER_TEST_BACKUPS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	s, token := embeddedStage(t)
	n := s.serve()
	ctx, stop := context.WithCancel(t.Context())
	seen, wait := load(ctx, n, token, max(40, 5*time.Duration(rounds))*time.Millisecond)
	defer wait()
	defer stop()

	folder := t.TempDir()
	files := 0.0
	for round := range rounds {
		time.Sleep(500 * time.Millisecond)
		archive := filepath.Join(folder, fmt.Sprintf("%d.tar", round))
		seen.backing.Store(true)
		made := s.do("backup", archive)
		seen.backing.Store(false)
		if made["files"].(float64) <= files/2 || fmt.Sprint(made["problems"]) != "[]" {
			t.Errorf("round %d: %v", round, made)
		}
		files = made["files"].(float64)
		restored := s.restore(archive)
		restored.checkFiles()
		t.Logf("round %d: %v files, %v bytes in %v s", round, made["files"], made["bytes"], made["seconds"])
		if err := errors.Join(os.Remove(archive), os.RemoveAll(restored.data)); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("left beside the archives: %v, %v", left, err)
	}
	stop()
	wait()
	seen.mu.Lock()
	defer seen.mu.Unlock()
	t.Logf("creates without a backup: %d, median %v, p95 %v; beside one: %d, median %v, p95 %v, longest %v",
		len(seen.took[false]), seen.at(false, 0.5), seen.at(false, 0.95), len(seen.took[true]), seen.at(true, 0.5), seen.at(true, 0.95), seen.at(true, 1))
	n.stop()
	s.checkFiles()
	for line := range strings.Lines(n.stderr.String()) {
		if strings.Contains(line, `"level":"ERROR"`) {
			t.Errorf("the server logged %s", line)
		}
	}
}

// TestARestoredInstallationGoesOn: a run that was going on begins again, and what
// was revoked after the backup works again unless everybody is signed out.
func TestARestoredInstallationGoesOn(t *testing.T) {
	t.Parallel()
	s, token := embeddedStage(t)
	n := s.serve()
	n.token = token
	begun := filepath.Join(t.TempDir(), "begun")
	a, err := n.create(token, "", n.order(1, countTo(begun), pause(2*time.Second), picture), nil)
	if err != nil {
		t.Fatal(err)
	}
	created := a.want(t, 202)
	id := created["request_id"].(string)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(begun); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the run does not begin")
		}
	}
	archive := filepath.Join(t.TempDir(), "one.tar")
	s.do("backup", archive)
	s.do("admin", "token", "revoke", token)
	if a := n.get("/api/v2/me"); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("a revoked token = %d", a.StatusCode)
	}
	n.stop()

	restored := &site{t: t, data: filepath.Join(t.TempDir(), "restored"), env: s.env}
	if made := restored.do("restore", archive); made["requeued_runs"] != 1.0 || made["ended_runs"] != 0.0 {
		t.Errorf("restore = %v, want one run to begin again", made)
	}
	restored.checkFiles()
	again := restored.serve()
	again.token = token
	created["status_url"] = "/api/v2/generate/" + id
	if rec := again.follow(created); rec["status"] != "succeeded" {
		t.Errorf("the run ended as %v", rec)
	}
	again.stop()
	restored.checkFiles()

	safe := s.restore(archive, "--sign-out-everyone")
	safe.checkFiles()
	last := safe.serve()
	last.token = token
	if a := last.get("/api/v2/me"); a.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token after everybody was signed out = %d", a.StatusCode)
	}
	last.stop()
}

// TestKilledBackups dies at every step: nothing is under the final name, and the
// next backup is not in the way of what is left.
func TestKilledBackups(t *testing.T) {
	t.Parallel()
	s, token := embeddedStage(t)
	n := s.serve()
	n.token = token
	n.upload(wave(100_000))
	folder := t.TempDir()
	archive := filepath.Join(folder, "one.tar")
	env := s.env
	for _, point := range []string{"backup.after_copy:1", "backup.mid:1", "backup.mid:2", "backup.mid:4", "backup.after_write:1"} {
		s.env = append(slices.Clone(env), "ATELIER_CRASH="+point)
		if _, err := s.try("backup", archive); !killed(err) {
			t.Fatalf("%s: %v, want a kill", point, err)
		}
		if _, err := os.Lstat(archive); err == nil {
			t.Fatalf("%s: there is something under the final name", point)
		}
	}
	s.env = env
	s.do("backup", archive)
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("in the folder: %v, %v", left, err)
	}
	s.restore(archive).checkFiles()
	n.stop()
}

// TestBackupOnAFullDisk fails with the reason and leaves nothing behind.
func TestBackupOnAFullDisk(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is missing (package strace): a full disk is not tried")
	}
	s, _ := embeddedStage(t)
	s.serve().stop()
	folder := t.TempDir()
	archive := filepath.Join(folder, "one.tar")
	cmd := s.command(t.Context(), "backup", archive)
	cmd.Args = append([]string{strace, "-f", "--seccomp-bpf", "-qq", "-o", os.DevNull, "-P", archive + ".part", "-e", "trace=write", "-e", "inject=write:error=ENOSPC"}, cmd.Args...)
	cmd.Path = strace
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "PTRACE") || strings.Contains(string(out), "Operation not permitted") {
		t.Skipf("strace may not trace here: %s", out)
	}
	if err == nil || !strings.Contains(string(out), "no space left on device") {
		t.Errorf("a full disk: %v: %s", err, out)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("left on a full disk: %v, %v", left, err)
	}
}
