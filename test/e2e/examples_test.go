package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"atelier/client"
	"atelier/docs"
	"atelier/internal/testkit/servers"
	"atelier/internal/testkit/watch"
	"atelier/test/program"
	"atelier/test/visitor"
)

// language is a language of the examples in the documentation.
type language struct {
	name string
	info string // of its code blocks
	// start writes the example into a folder, and returns the command that runs
	// it there.
	start func(t *testing.T, folder, example string) *exec.Cmd
}

var languages = []language{
	{"curl", "sh curl", startShell},
	{"go", "go", startGo},
	{"python", "python", startPython},
	{"js", "js", startNode},
	{"cli", "sh cli", startShell},
}

// examplePage says how the examples of a page, or of a section of a page, are
// tested.
type examplePage struct {
	// want is matched against the output of every language.
	want *regexp.Regexp
	// files are patterns of files that the examples leave in their folder, by
	// language; "" stands for all others.
	files map[string]string
	// forCompany: the examples have a company access token.
	forCompany bool
	// forAdmin: the examples have a team in TEAM, and in tokens.json the sign-in
	// of an admin of its company. On the command line they are for the operator.
	forAdmin bool
	// hasRun: the account has a run.
	hasRun bool
	// isEndless: examples may follow something until they are stopped. They are
	// stopped when want was printed.
	isEndless bool
	// signIn: a person approves the sign-in that the examples start.
	signIn bool
	// isReceiver: the examples listen for webhooks at port 8000.
	isReceiver bool
	// lacks are the languages that the page has no example for.
	lacks []string
}

// examplePages are the pages with examples. All examples of a page in one
// language are one program, except those of the sections that are listed as
// page#Section. A page that is missing here fails the test.
var examplePages = map[string]examplePage{
	"quickstart": {files: map[string]string{"": "fox.png"}},
	"generate": {files: map[string]string{
		"": "gradient-?.png", "curl": "*.png", "python": "out/*.png", "cli": "out/*.png",
	}},
	"files":          {want: regexp.MustCompile(`image/|succeeded`)},
	"events":         {want: regexp.MustCompile(`event: '?run|Gradient`), hasRun: true, isEndless: true},
	"boards":         {want: regexp.MustCompile(`(?s)event: '?nodes.*Day two|Autumn campaign: `), isEndless: true},
	"companies":      {want: regexp.MustCompile(`companies-\w+@example\.com`), forAdmin: true},
	"budgets":        {want: regexp.MustCompile(`50,?000`), forAdmin: true},
	"reports":        {forCompany: true, files: map[string]string{"": "usage-*.csv"}},
	"devices":        {want: regexp.MustCompile(`devices-\w+@example\.com`), signIn: true},
	"flows":          {want: regexp.MustCompile(`(?s)print:? .*succeeded.*(phone succeeded 0.*2 Wallpapers\n1 Wallpaper|phone.*\n1 .*Wallpaper.*deleted)`), lacks: []string{"go", "python", "js"}},
	"assistants":     {want: regexp.MustCompile(`"library_id":"`), lacks: []string{"go", "python", "js", "cli"}},
	"oauth":          {want: regexp.MustCompile(`(?s)"token_endpoint":.*"client_id":"`), lacks: []string{"go", "python", "js", "cli"}},
	"openai-clients": {want: regexp.MustCompile(`"url":"http`), lacks: []string{"go", "python", "js", "cli"}},
	"webhooks":       {want: regexp.MustCompile(`(pending|failing)\b.*studio\.example`)},
	"webhooks#A receiver": {
		want:       regexp.MustCompile(`(?m)^generation\.succeeded run-1\s*$`),
		isReceiver: true,
		lacks:      []string{"curl", "cli"},
	},
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")
	section   = regexp.MustCompile(`(?m)^## `)
)

// readExamples returns the programs of a page, by the name in examplePages and
// by the info of their blocks.
func readExamples(name, text string) map[string]map[string]string {
	programs := map[string]map[string]string{}
	for i, part := range section.Split(text, -1) {
		title, _, _ := strings.Cut(part, "\n")
		key := name
		if _, ok := examplePages[name+"#"+title]; ok && i > 0 {
			key = name + "#" + title
		}
		for _, m := range codeBlock.FindAllStringSubmatch(part, -1) {
			for _, l := range languages {
				if m[1] != l.info {
					continue
				}
				if programs[key] == nil {
					programs[key] = map[string]string{}
				}
				programs[key][l.info] += m[2] + "\n"
			}
		}
	}
	return programs
}

// TestExamples runs the examples of the documentation against a live service,
// in every language.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"curl", "jq"} {
		needProgram(t, name)
	}
	s := newSite(t)
	company := s.do("admin", "company", "create", "--name", "Studio", "--plan", "ENTERPRISE")["id"].(string)
	n := s.serve()

	pages, err := fs.Glob(docs.Files, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	unseen := maps.Clone(examplePages)
	for _, file := range pages {
		text, err := fs.ReadFile(docs.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		for name, examples := range readExamples(strings.TrimSuffix(file, ".md"), string(text)) {
			page, ok := unseen[name]
			if !ok {
				t.Errorf("%s has examples: keep examplePages complete", name)
			}
			delete(unseen, name)
			for _, l := range languages {
				example, ok := examples[l.info]
				if ok == slices.Contains(page.lacks, l.name) {
					t.Errorf("%s has an example for %s: %v", name, l.name, ok)
				}
				if !ok {
					continue
				}
				t.Run(name+"/"+l.name, func(t *testing.T) {
					t.Parallel()
					runExample(t, s, n, exampleRun{page, l, strings.ReplaceAll(example, "http://localhost:8080", n.url), name, company})
				})
			}
		}
	}
	for name := range unseen {
		t.Errorf("%s has no examples", name)
	}
}

// exampleRun is one example, in one language.
type exampleRun struct {
	page     examplePage
	language language
	code     string
	name     string // of the page
	company  string
}

// email is the address of the person who runs the example.
func (e exampleRun) email() string {
	name := strings.ToLower(strings.NewReplacer("#", "-", " ", "-").Replace(e.name))
	return name + "-" + e.language.name + "@example.com"
}

// newPerson makes a person with tokens to pay with, and returns an access token.
func (e exampleRun) newPerson(s *site) string {
	email := e.email()
	token := s.token(email)
	s.do("admin", "grant", "--email", email, "--tokens", "100")
	if e.page.forCompany {
		s.do("admin", "company", "add", "--company", e.company, "--email", email, "--permission", "VIEW_COMPANY_REPORTS")
		token = s.do("admin", "token", "create", "--email", email, "--name", "report", "--company", e.company)["token"].(string)
	}
	return token
}

// newAdmin makes the person of the example the admin of a company with a team,
// and stores their sign-in in the folder. It returns the variables of the
// example.
func (e exampleRun) newAdmin(t *testing.T, s *site, n *node, folder string) []string {
	t.Helper()
	company := s.do("admin", "company", "create", "--name", "Fox & Owl", "--plan", "ENTERPRISE")["id"].(string)
	s.do("admin", "company", "add", "--company", company, "--email", e.email(), "--role", "admin")
	team := s.do("admin", "team", "create", "--company", company, "--name", "Motion")["id"].(string)
	s.do("admin", "team", "add", "--team", team, "--email", e.email())

	person := visitor.New(n.url)
	if err := person.SignIn(e.email(), password); err != nil {
		t.Fatal(err)
	}
	in, err := person.Device("blender")
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := json.Marshal(in.Tokens)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "tokens.json"), tokens, 0o600); err != nil {
		t.Fatal(err)
	}
	env := append([]string{"TEAM=" + team, "ATELIER_DATA=" + s.data}, s.nodesEnv...)
	if s.database != "" {
		env = append(env, "ATELIER_DATABASE="+s.database)
	}
	return env
}

func runExample(t *testing.T, s *site, n *node, e exampleRun) {
	folder := t.TempDir()
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	if e.page.isReceiver {
		e.code = strings.ReplaceAll(e.code, "8000", port)
	}
	e.code = strings.ReplaceAll(e.code, "anna@studio.example", e.email())
	cmd := e.language.start(t, folder, e.code)
	token := e.newPerson(s)
	if e.page.hasRun {
		startGradient(t, n.url, token)
	}
	if e.page.signIn {
		token = ""
	}
	photo, err := os.ReadFile("../../docs/gallery/still-life.jpg")
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder, "photo.jpg", string(photo))

	cmd.Dir = folder
	cmd.Env = append(cmd.Environ(), "HOME="+folder, "XDG_CONFIG_HOME="+folder, "ATELIER_SERVICE="+n.url, "WEBHOOK_SECRET="+webhookSecret)
	if token != "" {
		cmd.Env = append(cmd.Env, "ATELIER_TOKEN="+token)
	}
	if e.page.forAdmin {
		cmd.Env = append(cmd.Env, e.newAdmin(t, s, n, folder)...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output := &sharedBuffer{}
	cmd.Stdout = output
	cmd.Stderr = output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if e.page.signIn {
		go approveSignIn(t.Context(), t, n.url, e.email(), output)
	}
	if e.page.isReceiver {
		sendWebhooks(t, address)
		_ = cmd.Process.Kill() // it listens until then
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if e.page.isEndless {
		stopWhenPrinted(cmd, output, e.page.want, ended)
	} else if err := <-ended; err != nil && !e.page.isReceiver {
		t.Fatalf("%v\n%s\n%s", err, output.String(), e.code)
	}

	if e.page.want != nil && !e.page.want.MatchString(output.String()) {
		t.Errorf("the example prints %q, want %s", output.String(), e.page.want)
	}
	pattern, ok := e.page.files[e.language.name]
	if !ok {
		pattern = e.page.files[""]
	}
	if pattern != "" {
		wantFiles(t, folder, pattern)
	}
}

// startGradient starts a run for the person with the token.
func startGradient(t *testing.T, service, token string) {
	t.Helper()
	c, err := client.New(client.Options{URL: service, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Runs.Create(t.Context(), client.RunRequest{Tool: "gradient"}); err != nil {
		t.Fatal(err)
	}
}

// stopWhenPrinted waits until a command has printed something that matches, and
// stops it and what it has started. It returns when the command has ended, or
// did not print it within a minute.
func stopWhenPrinted(cmd *exec.Cmd, output *sharedBuffer, want *regexp.Regexp, ended <-chan error) {
	deadline := time.After(time.Minute)
	for isOver := false; !isOver && !want.MatchString(output.String()); {
		select {
		case <-ended:
			return
		case <-deadline:
			isOver = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-ended
}

// fileStarts has the first bytes of files by their extension.
var fileStarts = map[string]string{".png": "\x89PNG", ".csv": "day,team_id,"}

// wantFiles checks that a folder has files of the right kind.
func wantFiles(t *testing.T, folder, pattern string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(found) == 0 {
		t.Errorf("the example leaves no %s: %v", pattern, err)
	}
	for _, name := range found {
		content, err := os.ReadFile(name)
		if err != nil || !bytes.HasPrefix(content, []byte(fileStarts[filepath.Ext(name)])) {
			t.Errorf("%s begins with %.40q: %v", name, content, err)
		}
	}
}

var verificationURL = regexp.MustCompile(`https?://\S+/device\?code=[A-Z-]+`)

// approveSignIn waits until an example shows the address of its sign-in, and
// approves it as the person.
func approveSignIn(ctx context.Context, t *testing.T, service, email string, output *sharedBuffer) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
		address := verificationURL.FindString(output.String())
		if address == "" {
			continue
		}
		person := visitor.New(service)
		err := person.SignIn(email, password)
		if err == nil {
			err = person.Decide(address, true)
		}
		if err != nil && ctx.Err() == nil {
			t.Errorf("approve %s: %v", address, err)
		}
		return
	}
}

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// sendWebhooks sends an event with a wrong signature to a receiver, then one
// with the right signature.
func sendWebhooks(t *testing.T, address string) {
	t.Helper()
	signer, err := standardwebhooks.NewWebhook(webhookSecret)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	send := func(id, signed string) int {
		event := fmt.Sprintf(`{"type": "generation.succeeded", "timestamp": %q, "data": {"request_id": %q, "status": "succeeded"}}`, now.Format(time.RFC3339), id)
		signature, err := signer.Sign("event-"+signed, now, []byte(event))
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address+"/hook", strings.NewReader(event))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Webhook-Id", "event-"+id)
		r.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
		r.Header.Set("Webhook-Signature", signature)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0 // it does not listen yet
		}
		res.Body.Close()
		return res.StatusCode
	}
	watch.Until(t, "the receiver", func() bool { return send("run-2", "run-3") != 0 })
	if status := send("run-2", "run-3"); status != http.StatusUnauthorized {
		t.Errorf("a wrong signature is answered with %d", status)
	}
	if status := send("run-1", "run-1"); status/100 != 2 {
		t.Errorf("an event is answered with %d", status)
	}
}

// sharedBuffer collects the output of a command while others read it.
type sharedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *sharedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *sharedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// repository returns a path of the repository, and skips the test where it is
// missing.
func repository(t *testing.T, path string) string {
	t.Helper()
	return servers.Need(t, path, "ATELIER_TEST_DOCS", func() (string, error) {
		full, err := filepath.Abs(filepath.Join("../..", path))
		if err != nil {
			return "", err
		}
		if _, err := os.Stat(full); err != nil {
			return "", fmt.Errorf("%w: %w", servers.ErrMissing, err)
		}
		return full, nil
	})
}

func startShell(t *testing.T, folder, example string) *exec.Cmd {
	t.Helper()
	binary, err := program.Binary()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(folder, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(bin, "atelier")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", example)
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	return cmd
}

var goImports = regexp.MustCompile(`(?s)import \(.*?\n\)\n`)

// startGo puts an example into a program of its own module: imports at the top,
// everything else in main.
func startGo(t *testing.T, folder, example string) *exec.Cmd {
	t.Helper()
	module := filepath.Dir(repository(t, "client/go.mod"))
	imports := strings.Join(goImports.FindAllString(example, -1), "")
	body := goImports.ReplaceAllString(example, "")
	write(t, folder, "main.go", "package main\n\n"+imports+"\nfunc main() {\n"+body+"}\n")
	write(t, folder, "go.mod", "module example\n\ngo 1.26\n\nrequire atelier/client v0.0.0\n\nreplace atelier/client => "+module+"\n")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "example", ".")
	build.Dir = folder
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "example"))
	cmd.Env = []string{}
	return cmd
}

func startPython(t *testing.T, folder, example string) *exec.Cmd {
	t.Helper()
	library := repository(t, "clients/python/src")
	bin := servers.Need(t, "Python with the packages of the library", "ATELIER_TEST_DOCS", func() (string, error) {
		return servers.Python(t.Context(), filepath.Join(library, "../tests"), "python-client")
	})
	write(t, folder, "example.py", example)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "python"), "example.py")
	cmd.Env = []string{"PYTHONPATH=" + library}
	return cmd
}

func startNode(t *testing.T, folder, example string) *exec.Cmd {
	t.Helper()
	library := filepath.Dir(repository(t, "clients/js/dist"))
	node := needProgram(t, "node")
	if err := os.Mkdir(filepath.Join(folder, "node_modules"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(library, filepath.Join(folder, "node_modules/atelier-client")); err != nil {
		t.Fatal(err)
	}
	write(t, folder, "example.mjs", example)
	cmd := exec.CommandContext(t.Context(), node, "example.mjs")
	cmd.Env = []string{}
	return cmd
}
