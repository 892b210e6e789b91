// Package nodes runs several nodes of the program behind a proxy, on one
// PostgreSQL database and one S3 server, while nodes come and go.
package nodes

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"atelier/internal/file/blob/blobtest"
	"atelier/internal/testkit/watch"
	"atelier/test/program"
)

func TestMain(m *testing.M) { program.Main(m) }

const (
	email    = "anna@example.com"
	password = "correct horse battery"

	// shutdownDelay is the time that the proxy has to notice that a node stops.
	// It is long, because the machine may suspend the test for seconds.
	shutdownDelay = 5 * time.Second

	// startLimit is the longest start of a node.
	startLimit = 3 * time.Minute
)

// manifest is a tool whose runs do what their script says.
const manifest = `name: Scripted
price: {type: COST, tokens: 3}
output: {type: %s, mime_types: [%s]}
engine: {name: script}
fields:
  - {key: script, type: TEXT_AREA, label: Script, max_length: 1000}
`

// Manifests by the kind of results.
var (
	pictureTool = fmt.Sprintf(manifest, "IMG", "image/png")
	modelTool   = fmt.Sprintf(manifest, "ASSET_3D", "model/gltf-binary")
)

// cluster is an installation of several nodes. Each node has a data folder of
// its own, as if it were on a machine of its own.
type cluster struct {
	t        *testing.T
	dir      string
	env      []string
	commands *node // runs commands, and never serves
}

// newCluster creates an installation with one person and one tool, whose files
// are in a bucket. tool is the manifest of the tool.
func newCluster(t *testing.T, database, tool string, bucket *blobtest.Bucket, env ...string) *cluster {
	t.Helper()
	return newClusterWith(t, "", database, tool, append([]string{
		"ATELIER_BLOBS=" + bucket.Address(), "ATELIER_S3_ACCESS_KEY=" + bucket.AccessKey, "ATELIER_S3_SECRET_KEY=" + bucket.SecretKey,
	}, env...)...)
}

// newClusterOf creates an installation with another binary. Its files are in a
// folder that all nodes share.
func newClusterOf(t *testing.T, binary, database string, env ...string) *cluster {
	t.Helper()
	return newClusterWith(t, binary, database, pictureTool, env...)
}

func newClusterWith(t *testing.T, binary, database, tool string, env ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir()}
	tools := filepath.Join(c.dir, "tools")
	if err := errors.Join(os.Mkdir(tools, 0o700), os.WriteFile(filepath.Join(tools, "scripted.yaml"), []byte(tool), 0o600)); err != nil {
		t.Fatal(err)
	}
	secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("s"), 32))
	c.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir,
		"ATELIER_DATABASE=" + database, "ATELIER_SECRET=" + secret, "ATELIER_TOOLS=" + tools, "ATELIER_CATALOG_BUILTIN=false",
		"ATELIER_METRICS_LISTEN=off", "ATELIER_LOG_LEVEL=warn", "ATELIER_SHUTDOWN_DELAY=" + shutdownDelay.String(),
		"ATELIER_LIMITS_REQUESTS_PER_MINUTE=0", "ATELIER_LIMITS_CREATE_PER_MINUTE=1000000", "ATELIER_LIMITS_CREATE_PER_HOUR=1000000",
		"ATELIER_LIMITS_ACTIVE_RUNS=1000", "ATELIER_TOKENS_SIGNUP_GRANT=1000000", "ATELIER_HTTP_TRUSTED_PROXIES=127.0.0.0/8",
		"ATELIER_BLOBS=file://" + filepath.Join(c.dir, "files"),
	}
	c.env = append(c.env, env...)
	c.commands = c.newNode("commands", "api", binary)
	c.do("migrate")
	c.do("admin", "person", "create", "--email", email, "--password", password, "--verified")
	return c
}

// command returns a command of a binary that uses a data folder.
func (c *cluster) command(binary, data string, args ...string) *exec.Cmd {
	if binary == "" {
		var err error
		if binary, err = program.Binary(); err != nil {
			c.t.Fatal(err)
		}
	}
	cmd := exec.Command(binary, append(args, "--data", data)...)
	cmd.Env = c.env
	return cmd
}

// do runs a command to its end and decodes the JSON that it prints.
func (c *cluster) do(args ...string) map[string]any {
	c.t.Helper()
	cmd := c.command(c.commands.binary, c.commands.data, append(args, "--json")...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("%v: %v: %s%s", args, err, stderr.Bytes(), stdout.Bytes())
	}
	var v map[string]any
	if err := json.Unmarshal(stdout.Bytes(), &v); err != nil {
		c.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// newToken returns an access token of the person.
func (c *cluster) newToken() string {
	c.t.Helper()
	return c.do("admin", "token", "create", "--email", email, "--name", "test")["token"].(string)
}

// check fails the test if an invariant is broken.
func (c *cluster) check() {
	c.t.Helper()
	if v := c.do("check"); fmt.Sprint(v["violations"]) != "[]" {
		c.t.Errorf("violations: %v", v)
	}
}

// node is a process that serves, and that can be started again at the same
// address.
type node struct {
	c       *cluster
	name    string
	role    string
	binary  string // "" for the program of this version
	data    string
	address string
	log     *watch.Log

	cmd    *exec.Cmd
	ready  <-chan struct{}
	exited chan struct{}
	err    error // after exited
}

// newNode returns a node that is not started yet. role is api, worker, or both
// separated by a comma.
func (c *cluster) newNode(name, role, binary string) *node {
	c.t.Helper()
	n := &node{
		c:       c,
		name:    name,
		role:    role,
		binary:  binary,
		data:    filepath.Join(c.dir, name),
		address: program.FreeAddress(c.t),
		log:     &watch.Log{},
	}
	c.t.Cleanup(func() {
		if n.cmd != nil {
			n.cmd.Process.Kill()
			<-n.exited
		}
		if c.t.Failed() {
			c.t.Logf("log of %s:\n%s", name, n.log)
		}
	})
	return n
}

func (n *node) url() string { return "http://" + n.address }

// start starts the node and waits until it is ready.
func (n *node) start(base string) {
	n.c.t.Helper()
	n.launch(base)
	n.awaitStart()
}

// launch starts the node and does not wait for it. base is the address that
// its clients use.
func (n *node) launch(base string) {
	n.c.t.Helper()
	n.cmd = n.c.command(n.binary, n.data, "serve", "--listen", n.address, "--base-url", base, "--roles", n.role)
	if n.role == "worker" { // no proxy sends requests to it
		n.cmd.Env = append(slices.Clone(n.cmd.Env), "ATELIER_SHUTDOWN_DELAY=0s")
	}
	n.cmd.Stderr = n.log
	stdout, err := n.cmd.StdoutPipe()
	if err != nil {
		n.c.t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		n.c.t.Fatal(err)
	}
	n.exited = make(chan struct{})
	ready := make(chan struct{})
	n.ready = ready
	go func() {
		lines := bufio.NewScanner(stdout)
		for told := false; lines.Scan(); {
			if !told && strings.HasPrefix(lines.Text(), "atelier: ready ") {
				told = true
				close(ready)
			}
		}
		n.err = n.cmd.Wait()
		close(n.exited)
	}()
}

// awaitStart waits until the node says that it is ready.
func (n *node) awaitStart() {
	n.c.t.Helper()
	select {
	case <-n.ready:
	case <-n.exited:
		n.c.t.Fatalf("%s ended: %v\n%s", n.name, n.err, n.log)
	case <-time.After(startLimit):
		n.c.t.Fatalf("%s is not ready\n%s", n.name, n.log)
	}
}

// stop ends the node in order and expects exit status 0.
func (n *node) stop() {
	n.c.t.Helper()
	n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.exited:
	case <-time.After(time.Minute):
		n.c.t.Fatalf("%s does not end within a minute", n.name)
	}
	if n.err != nil {
		n.c.t.Errorf("%s ended with %v", n.name, n.err)
	}
}

// findTool returns the id and the hash of the only tool.
func findTool(t *testing.T, base, token string) (id, hash string) {
	t.Helper()
	list := readJSON(t, base+"/api/v2/tools", token)
	id = list["data"].([]any)[0].(map[string]any)["id"].(string)
	return id, readJSON(t, base+"/api/v2/tools/"+id, token)["tool_fields_hash"].(string)
}

// readJSON reads something that is there.
func readJSON(t *testing.T, address, token string) map[string]any {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var v map[string]any
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s = %d %v, %v", address, res.StatusCode, v, err)
	}
	return v
}
