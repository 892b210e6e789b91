package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"atelier/internal/testkit/browser"
	"atelier/internal/testkit/watch"
	"atelier/test/program"
)

// clientCommand prepares a command that is a client of a service. Its profiles
// are in the given home folder.
func clientCommand(t *testing.T, home string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := program.Binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home}
	return cmd
}

// TestLoginInBrowser signs the command line in, in a real terminal and with a
// real browser: the command shows an address and a code and opens the browser,
// the person compares the code on the page and approves, and the next command
// knows them.
func TestLoginInBrowser(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		s.env = append(s.env, "ATELIER_DEVICE_INTERVAL=1s")
		var args []string
		if updatesCaptures() && s.database == "" { // the documentation has the address of the quick start
			args = []string{"--listen", "localhost:8080"}
		}
		n := s.serve(args...)

		// The system's browser is a program that keeps the address for us.
		dir := t.TempDir()
		opened := filepath.Join(dir, "opened")
		write(t, dir, "open", "#!/bin/sh\necho \"$1\" >"+opened+".part && mv "+opened+".part "+opened+"\n")
		if err := os.Chmod(filepath.Join(dir, "open"), 0o700); err != nil {
			t.Fatal(err)
		}
		r := openTerminal(t, "ATELIER_SERVICE="+n.url, "BROWSER="+filepath.Join(dir, "open"))
		r.enter("atelier login")
		screen := r.await("the code", `(?s)the page shows the code (\S+)\n.*Waiting`)
		code := regexp.MustCompile(`shows the code (\S+)`).FindStringSubmatch(screen)[1]
		var address []byte
		watch.Until(t, "the browser", func() bool {
			var err error
			address, err = os.ReadFile(opened)
			return err == nil
		})
		if !strings.Contains(screen, "Open "+string(address)) {
			t.Errorf("the browser was opened at %s:\n%s", address, screen)
		}

		b := browser.Open(t)
		b.Goto(strings.TrimSpace(string(address)) + "&intent=signup")
		enter(b, "anna@example.com")
		if text := b.Text(); !strings.Contains(text, code) || !strings.Contains(text, "cli") {
			t.Errorf("the page does not show the code %s: %s", code, text)
		}
		b.Click("[value=approve]")
		if !strings.Contains(b.Text(), "Approved") {
			t.Fatalf("after approving: %s", b.Text())
		}
		screen = r.await("the end of the sign-in", `(?s)Signed in to \S+ as anna@example\.com\.\nThe profile .*\n\$ $`)
		if s.database == "" {
			compareCapture(t, "login", strings.TrimSuffix(screen, "$ \n"))
		}

		out, err := clientCommand(t, r.home, "whoami", "--select", ".user.email").Output()
		if err != nil || string(out) != "anna@example.com\n" {
			t.Errorf("whoami = %q, %v", out, err)
		}

		// Signing out ends the device: the browser's page does not list it any more.
		if out, err := clientCommand(t, r.home, "logout").CombinedOutput(); err != nil {
			t.Fatalf("logout: %v: %s", err, out)
		}
		b.Goto(n.url + "/devices")
		if text := b.Text(); strings.Contains(text, "cli") {
			t.Errorf("the device is still signed in: %s", text)
		}
		if err := clientCommand(t, r.home, "whoami").Run(); err == nil {
			t.Error("whoami works after logout")
		}
	})
}
