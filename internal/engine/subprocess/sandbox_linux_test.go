package subprocess_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atelier/internal/engine/subprocess"
)

// Not parallel: what holds for all programs is set.
func TestSandbox(t *testing.T) {
	if subprocess.SandboxName() == "" {
		t.Skip("this system has no sandbox")
	}
	t.Cleanup(func() { subprocess.SetSandbox(subprocess.Sandbox{Mode: subprocess.SandboxAuto}) })

	// Ours lie beside what the program may read, where it is hardest.
	root := t.TempDir()
	put := func(name string) string {
		t.Helper()
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("hunter2\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	database := put("program/data/atelier.db")
	key := put("program/data/keys/secret")
	settings := put("program/atelier.yaml")
	library := put("program/lib/module")
	elsewhere := put("elsewhere")
	other := folder(t)
	if err := other.Write("in/picture", []byte("hunter2\n")); err != nil {
		t.Fatal(err)
	}
	beside, err := subprocess.NewFolder(filepath.Join(root, "program"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { beside.Close() })
	if err := beside.Write("picture", []byte("hunter2\n")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(database, filepath.Join(root, "program/lib/link")); err != nil {
		t.Fatal(err)
	}
	subprocess.SetSandbox(subprocess.Sandbox{Mode: subprocess.SandboxRequire, Hidden: []string{filepath.Join(root, "program/data"), settings}})

	parent := fmt.Sprint("/proc/", os.Getpid())
	refused := []string{
		"cat " + database, "cat " + key, "cat " + settings, "cat " + elsewhere, "cat " + filepath.Join(root, "program/lib/link"),
		"cat " + other.FilePath("in/picture"), "cat " + beside.FilePath("picture"), "ls " + other.FilePath(), "ls " + filepath.Join(root, "program/data"),
		"cat " + parent + "/environ", "cat " + parent + "/mem", "cat " + parent + "/root" + database, "readlink " + parent + "/fd/1", "cat " + parent + "/cwd/sandbox.go",
		"cat /etc/shadow", "cat " + root + "/program/../elsewhere",
		"echo x > " + elsewhere, "echo x > " + root + "/new", "echo x > /tmp/atelier-new", "echo x > " + library, "mkdir " + root + "/dir", "rm " + elsewhere,
		"mv " + library + " .", "ln " + library + " here", "chroot / /bin/true", "echo 1 > /proc/sys/vm/drop_caches", "kill -0 " + fmt.Sprint(os.Getpid()),
	}
	allowed := []string{
		"cat " + library, "echo x > file && cat file && mv file other && rm other", "mkdir -p a/b && ln -s b a/c && rm -r a",
		"cat /proc/self/maps", "cat /proc/meminfo", "cat /dev/null", "head -c 8 /dev/urandom", "echo x > /dev/null", "ls /usr/lib",
		"cat /etc/passwd", `f=$(mktemp) && echo x > "$f" && rm "$f"`, "sh -c 'cat /proc/self/status'",
	}
	try := func(script string) error {
		p := shell(t, script)
		p.Read = []string{filepath.Join(root, "program")}
		out, err := run(t, p)
		if strings.Contains(strings.Join(out, "\n"), "hunter2") && !strings.Contains(script, library) {
			t.Errorf("%s gave a secret", script)
		}
		return err
	}
	for _, script := range refused {
		if err := try(script); err == nil {
			t.Errorf("%s was not refused", script)
		}
	}
	for _, script := range allowed {
		if err := try(script); err != nil {
			t.Errorf("%s: %v", script, err)
		}
	}
	if text, err := os.ReadFile(elsewhere); err != nil || string(text) != "hunter2\n" {
		t.Errorf("a file outside is %q, %v", text, err)
	}

	// Without, as before: what was refused is there to see.
	subprocess.SetSandbox(subprocess.Sandbox{Mode: subprocess.SandboxOff})
	if out, err := run(t, shell(t, "cat "+elsewhere)); err != nil || len(out) != 1 {
		t.Errorf("without a sandbox: %q, %v", out, err)
	}
}

// TestWriteOutside lets a program write where its engine says.
func TestWriteOutside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := shell(t, "echo x > "+filepath.Join(dir, "file"))
	if subprocess.SandboxName() != "" {
		if _, err := run(t, p); err == nil {
			t.Error("it wrote outside its folder")
		}
	}
	p.Write = []string{dir}
	if _, err := run(t, p); err != nil {
		t.Errorf("run = %v", err)
	}
}
