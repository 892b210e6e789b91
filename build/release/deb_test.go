//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"atelier/internal/testkit/watch"
)

// programFolder is where builtProgram puts the program.
var programFolder string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "atelier-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programFolder = folder
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// builtProgram builds the program of this machine. It compiles with the flags of
// go build and go test, so that all packages are in the build cache after other
// tests, and only linking is left; the linker's flags shorten that.
var builtProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programFolder, "atelier")
	c := exec.Command("go", "build", "-ldflags", "-s -w -X main.release=1.2.0-rc1", "-o", path, "./cmd/atelier")
	c.Dir = testSource().Root
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return path, nil
})

// buildDeb packs the real program of this machine and returns the package's
// path.
func buildDeb(t *testing.T) string {
	t.Helper()
	binary, err := builtProgram()
	if err != nil {
		t.Fatal(err)
	}
	s := testSource()
	p, err := readProgram(Target{"linux", runtime.GOARCH}, binary)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "atelier.deb")
	if err := writeDeb(s, p, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestDebContent reads a package the way dpkg does and checks its parts.
func TestDebContent(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "atelier.deb")
	if err := writeDeb(testSource(), testProgram(t, Target{"linux", "arm64"}), name); err != nil {
		t.Fatal(err)
	}
	members := readAr(t, name)
	if string(members["debian-binary"]) != "2.0\n" {
		t.Errorf("debian-binary = %q", members["debian-binary"])
	}

	control := readTarGzip(t, members["control.tar.gz"])
	for _, line := range []string{"Package: atelier\n", "Version: 1.2.0~rc1\n", "Architecture: arm64\n", "Maintainer: Atelier maintainers <root@localhost>\n"} {
		if !strings.Contains(string(control["./control"].content), line) {
			t.Errorf("control lacks %q: %s", line, control["./control"].content)
		}
	}
	if got, want := string(control["./conffiles"].content), "/etc/atelier/atelier.yaml\n/etc/atelier/environment\n"; got != want {
		t.Errorf("conffiles = %q, want %q", got, want)
	}
	for _, script := range debScripts {
		if f := control["./"+script]; f.header == nil || f.header.Mode != 0o755 || !strings.HasPrefix(string(f.content), "#!/bin/sh\n") {
			t.Errorf("script %s is %+v", script, f.header)
		}
		runCommand(t, string(control["./"+script].content), "sh", "-n")
	}

	data := readTarGzip(t, members["data.tar.gz"])
	for path, mode := range map[string]int64{
		"./usr/bin/atelier":                            0o755,
		"./usr/lib/systemd/system/atelier.service":     0o644,
		"./etc/atelier/":                               0o755,
		"./etc/atelier/environment":                    0o640,
		"./usr/share/doc/atelier/copyright":            0o644,
		"./usr/share/doc/atelier/NOTICE":               0o644,
		"./usr/share/doc/atelier/THIRD-PARTY-LICENSES": 0o644,
	} {
		if f := data[path]; f.header == nil || f.header.Mode != mode || f.header.Uid != 0 {
			t.Errorf("%s is %+v, want mode %o", path, f.header, mode)
		}
	}
	if _, err := exec.LookPath("dpkg-deb"); err == nil {
		runCommand(t, "", "dpkg-deb", "--info", name)
		runCommand(t, "", "dpkg-deb", "--contents", name)
	}
}

// readAr returns the members of an ar archive by name.
func readAr(t *testing.T, name string) map[string][]byte {
	t.Helper()
	rest, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rest, ok := bytes.CutPrefix(rest, []byte("!<arch>\n"))
	if !ok {
		t.Fatal("not an ar archive")
	}
	members := map[string][]byte{}
	for len(rest) > 0 {
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || string(rest[58:60]) != "`\n" {
			t.Fatalf("bad member header %q", rest[:60])
		}
		members[strings.TrimSpace(string(rest[:16]))] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	return members
}

// TestDebInstalls installs the package, starts the service as the unit does,
// and removes the package. It runs as root on a machine without a running
// systemd, such as a container, because it must not start or replace a service
// that somebody uses.
func TestDebInstalls(t *testing.T) {
	requireBareSystem(t)
	deb := buildDeb(t)
	t.Cleanup(func() { removeTraces(t) })
	runDpkg(t, "--install", deb)

	owner, err := user.Lookup("atelier")
	if err != nil {
		t.Fatal(err)
	}
	checkOwner(t, "/var/lib/atelier", 0o700|os.ModeDir, owner.Uid)
	checkOwner(t, "/etc/atelier", 0o750|os.ModeDir, "0")
	checkOwner(t, "/etc/atelier/atelier.yaml", 0o640, "0")
	checkOwner(t, "/etc/atelier/environment", 0o640, "0")
	if got := runCommand(t, "", "/usr/bin/atelier", "version"); !strings.HasPrefix(got, "atelier 1.2.0-rc1\n") {
		t.Errorf("version = %q", got)
	}
	if _, err := exec.LookPath("systemd-analyze"); err == nil {
		runCommand(t, "", "systemd-analyze", "verify", "--man=no", "/usr/lib/systemd/system/atelier.service")
	}
	serveAsUnit(t, owner)
	if _, err := os.Stat("/var/lib/atelier/atelier.db"); err != nil {
		t.Errorf("the service left no database: %v", err)
	}

	if err := os.WriteFile("/etc/atelier/environment", []byte("ATELIER_SIGNUP=closed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runDpkg(t, "--install", deb) // the same version again stands for an upgrade
	if kept, err := os.ReadFile("/etc/atelier/environment"); err != nil || string(kept) != "ATELIER_SIGNUP=closed\n" {
		t.Errorf("the upgrade changed a settings file to %q, %v", kept, err)
	}
	checkOwner(t, "/etc/atelier/environment", 0o640, "0")

	runDpkg(t, "--remove", "atelier")
	for path, want := range map[string]bool{
		"/usr/bin/atelier":                        false,
		"/usr/lib/systemd/system/atelier.service": false,
		"/usr/share/doc/atelier":                  false,
		"/etc/atelier/atelier.yaml":               true,
		"/var/lib/atelier/atelier.db":             true,
	} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("after the removal, %s exists: %v, want %v", path, err == nil, want)
		}
	}
	runDpkg(t, "--purge", "atelier")
	if _, err := os.Lstat("/etc/atelier"); err == nil {
		t.Error("/etc/atelier is left after the purge")
	}
	if _, err := os.Lstat("/var/lib/atelier/atelier.db"); err != nil {
		t.Errorf("the purge deleted people's data: %v", err)
	}
}

// requireBareSystem skips the test unless it may install a package.
func requireBareSystem(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("dpkg is not installed: this is not Debian")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can install packages")
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("systemd is running: the package would start a service on this machine")
	}
	for _, path := range []string{"/usr/bin/atelier", "/etc/atelier", "/var/lib/atelier"} {
		if _, err := os.Lstat(path); err == nil {
			t.Skipf("%s exists: Atelier is installed on this machine", path)
		}
	}
}

// removeTraces removes what the test installed, also after a failure.
func removeTraces(t *testing.T) {
	t.Helper()
	for _, command := range [][]string{{"dpkg", "--purge", "atelier"}, {"userdel", "atelier"}, {"rm", "-rf", "/var/lib/atelier"}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil { //nolint:gosec // constant commands
			t.Errorf("%s: %v: %s", command[0], err, out)
		}
	}
}

// runDpkg runs dpkg, and waits while another program uses the package database.
func runDpkg(t *testing.T, args ...string) {
	t.Helper()
	watch.Until(t, "the package database", func() bool {
		out, err := exec.CommandContext(t.Context(), "dpkg", args...).CombinedOutput()
		if err != nil && strings.Contains(string(out), "locked by another process") {
			return false
		}
		if err != nil {
			t.Fatalf("dpkg %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return true
	})
}

// checkOwner checks the mode and the owner of a file, and that its group is the
// service's.
func checkOwner(t *testing.T, path string, mode os.FileMode, uid string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Error(err)
		return
	}
	group, err := user.LookupGroup("atelier")
	if err != nil {
		t.Fatal(err)
	}
	s := info.Sys().(*syscall.Stat_t)
	if info.Mode() != mode || fmt.Sprint(s.Uid) != uid || fmt.Sprint(s.Gid) != group.Gid {
		t.Errorf("%s has mode %v, owner %d, group %d; want %v, %s, %s", path, info.Mode(), s.Uid, s.Gid, mode, uid, group.Gid)
	}
}

// serveAsUnit runs the command of the installed unit as the service's user,
// waits until the service is ready, and stops it as systemd does.
func serveAsUnit(t *testing.T, owner *user.User) {
	t.Helper()
	unit, err := os.ReadFile("/usr/lib/systemd/system/atelier.service")
	if err != nil {
		t.Fatal(err)
	}
	var command []string
	for line := range strings.Lines(string(unit)) {
		if start, ok := strings.CutPrefix(line, "ExecStart="); ok {
			command = strings.Fields(start)
		}
	}
	if len(command) == 0 {
		t.Fatal("the unit has no ExecStart")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()

	uid, err := strconv.ParseUint(owner.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(owner.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	var log watch.Log
	c := exec.CommandContext(context.Background(), command[0], command[1:]...) //nolint:gosec // of the package
	c.Dir = "/var/lib/atelier"
	c.Env = []string{"PATH=/usr/bin:/bin", "ATELIER_LISTEN=" + address, "ATELIER_METRICS_LISTEN=off", "ATELIER_SHUTDOWN_DELAY=0s"}
	c.Stdout = &log
	c.Stderr = &log
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill() })
	watch.Until(t, "the service to be ready", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("the service ended: %v\n%s", err, log.String())
		default:
		}
		res, err := http.Get("http://" + address + "/readyz") //nolint:noctx // Until has the limit
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	res, err := http.Get("http://" + address + "/api/v2/openapi.json") //nolint:noctx // of a test
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("the API answers %s", res.Status)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("after SIGTERM the service ended with %v\n%s", err, log.String())
	}
}
