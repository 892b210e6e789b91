package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Source is the source code that a release is built from.
type Source struct {
	Root    string    // the root of the repository
	Commit  string    // the commit's full name
	Time    time.Time // the commit's time, which all files of a release get
	Version string    // such as 1.2.0
	Changed bool      // there are uncommitted changes
	Level   int       // how much the packages are compressed, in the words of compress/gzip

	Maintainer string // of the Debian packages, such as "Ada <ada@example.com>"
}

// defaultMaintainer is true for packages that are built for one's own machines:
// the mail goes to the administrator of the machine. Packages for others need an
// address that they can reach.
const defaultMaintainer = "Atelier maintainers <root@localhost>"

// baseName returns the beginning of the names of all packages.
func (s Source) baseName() string { return "atelier_" + s.Version }

// validVersion matches versions that are valid in file names, in a Debian
// package and as the tag of an image.
var validVersion = regexp.MustCompile(`^[0-9][0-9A-Za-z.-]{0,63}$`)

// readSource describes the commit that is checked out. If version is empty, it
// is the commit's tag without its "v", or else one made of the commit's time
// and name.
func readSource(ctx context.Context, version string) (Source, error) {
	root, err := runGit(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return Source{}, err
	}
	shown, err := runGit(ctx, "show", "--no-patch", "--format=%H %ct", "HEAD")
	if err != nil {
		return Source{}, err
	}
	commit, seconds, _ := strings.Cut(shown, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Source{}, fmt.Errorf("time of the commit: %w", err)
	}
	changes, err := runGit(ctx, "status", "--porcelain")
	if err != nil {
		return Source{}, err
	}
	s := Source{
		Root:    root,
		Commit:  commit,
		Time:    time.Unix(unix, 0).UTC(),
		Version: version,
		Changed: changes != "",
		Level:   gzip.DefaultCompression,

		Maintainer: defaultMaintainer,
	}
	if s.Version == "" {
		if tag, err := runGit(ctx, "describe", "--tags", "--exact-match", "--match", "v[0-9]*"); err == nil {
			s.Version = strings.TrimPrefix(tag, "v")
		} else {
			s.Version = "0.0.0-" + s.Time.Format("20060102150405") + "-" + commit[:12]
		}
	}
	if !validVersion.MatchString(s.Version) {
		return Source{}, fmt.Errorf("%q is not a version such as 1.2.0", s.Version)
	}
	return s, nil
}

func runGit(ctx context.Context, args ...string) (string, error) {
	var failure bytes.Buffer
	c := exec.CommandContext(ctx, "git", args...)
	c.Stderr = &failure
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(failure.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// allTargets are the systems that a release has programs for.
var allTargets = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// Target is a system that a program is built for, in the words of Go.
type Target struct{ OS, Arch string }

func (t Target) String() string { return t.OS + "/" + t.Arch }

func (t Target) programName() string {
	if t.OS == "windows" {
		return "atelier.exe"
	}
	return "atelier"
}

// environment returns the environment for the Go tool: the target, and fixed
// values of all variables that would change the result.
func (t Target) environment() []string {
	return []string{
		"CGO_ENABLED=0",
		"GOOS=" + t.OS,
		"GOARCH=" + t.Arch,
		"GOAMD64=v1",
		"GOARM64=v8.0",
		"GOFLAGS=",
		"GOEXPERIMENT=",
		"GOWORK=off",
		"GOFIPS140=off",
	}
}

func parseTargets(text string) ([]Target, error) {
	var chosen []Target
	for one := range strings.SplitSeq(text, ",") {
		if !slices.Contains(allTargets, one) {
			return nil, fmt.Errorf("%q is not a target; choose from %s", one, strings.Join(allTargets, ", "))
		}
		system, arch, _ := strings.Cut(one, "/")
		chosen = append(chosen, Target{system, arch})
	}
	return chosen, nil
}

// buildBinary compiles the program for a target, statically and without the
// paths of this machine.
func buildBinary(ctx context.Context, s Source, t Target, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // for everybody
		return err
	}
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w -buildid= -X main.release="+s.Version, "-o", path, "./cmd/atelier") //nolint:gosec // the version is checked
	c.Dir = s.Root
	c.Env = append(os.Environ(), t.environment()...)
	out, err := c.CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("build for %s: %w", t, err), errors.New(string(out)))
	}
	return nil
}
