package clients_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"atelier/internal/testkit/servers"
)

const skipVariable = "ATELIER_TEST_CLIENTS"

// root is the folder of the project.
var root = sync.OnceValues(func() (string, error) {
	source, err := servers.Source(context.Background(), "clients")
	return filepath.Dir(filepath.Dir(source)), err
})

// findNode returns the path of Node.js. The JavaScript client needs no packages
// to run.
var findNode = sync.OnceValues(func() (string, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("the JavaScript client %w: Node.js is not installed (Debian: apt-get install nodejs)", servers.ErrMissing)
	}
	return node, nil
})

// installPython returns the Python of a virtual environment with the packages
// that the Python client and its tests need.
var installPython = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	root, err := root()
	if err != nil {
		return "", err
	}
	bin, err := servers.Python(ctx, filepath.Join(root, "clients", "python", "tests"), "python-client")
	if err != nil {
		return "", fmt.Errorf("the Python client: %w", err)
	}
	return filepath.Join(bin, "python"), nil
})

// command returns a command that runs in a folder of the project.
func command(t *testing.T, folder, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, arguments...)
	cmd.Dir = filepath.Join(root, folder)
	return cmd
}

// python returns a command of Python that finds the client.
func python(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, "clients/python", servers.Need(t, "Python client", skipVariable, installPython), arguments...)
	cmd.Env = []string{"PYTHONPATH=" + filepath.Join(cmd.Dir, "src"), "PYTHONDONTWRITEBYTECODE=1"}
	return cmd
}

// node returns a command of Node.js.
func node(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	return command(t, "clients/js", servers.Need(t, "JavaScript client", skipVariable, findNode), arguments...)
}

func goDriver(t *testing.T) *exec.Cmd {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "driver")
	build := command(t, ".", "go", "build", "-o", binary, "./test/clients/driver")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the driver: %v\n%s", err, out)
	}
	return exec.Command(binary)
}

func pythonDriver(t *testing.T) *exec.Cmd {
	t.Helper()
	return python(t, "tests/fault_driver.py")
}

func javascriptDriver(t *testing.T) *exec.Cmd {
	t.Helper()
	return node(t, "test/fault-driver.mjs")
}

// TestPython runs the tests of the Python client.
func TestPython(t *testing.T) {
	t.Parallel()
	testLibrary(t, python(t, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"))
}

// TestPythonTypes checks the types of the Python client and of its tests, which
// use it as its users do. The types of the JavaScript client are checked when it
// is built.
func TestPythonTypes(t *testing.T) {
	t.Parallel()
	cmd := python(t, "-m", "mypy", "--cache-dir", os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("mypy: %v\n%s", err, out)
	}
}

// TestJavaScript runs the tests of the JavaScript client. It names the files:
// versions of Node.js differ in what they run for a folder.
func TestJavaScript(t *testing.T) {
	t.Parallel()
	cmd := node(t, "--test")
	tests, err := filepath.Glob(filepath.Join(cmd.Dir, "test", "*.test.mjs"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("the JavaScript client has no tests: %v", err)
	}
	cmd.Args = append(cmd.Args, tests...)
	testLibrary(t, cmd)
}

// testLibrary runs a library's own tests with a service and an access token.
func testLibrary(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	s := startService(t,
		"ATELIER_LIMITS_CREATE_PER_MINUTE=100000",
		"ATELIER_LIMITS_CREATE_PER_HOUR=100000",
		"ATELIER_LIMITS_ACTIVE_RUNS=1000",
	)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	limited := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	limited.Dir = cmd.Dir
	limited.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"), "HOME="+s.home, "CI="+os.Getenv("CI"), "ATELIER_URL="+s.url(), "ATELIER_TOKEN="+s.token)
	if out, err := limited.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}
