package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"atelier/internal/base/config"
)

// checkSettings parses the arguments and the environment of a node as the
// program does, and fails for unknown names and invalid values.
func checkSettings(t *testing.T, node string, args []string, environment map[string]string) config.Config {
	t.Helper()
	getenv := func(name string) string { return environment[name] }
	sources, err := config.NewSources(args, getenv)
	if err != nil {
		t.Fatalf("%s: %v", node, err)
	}
	var grammar struct {
		config.Config
	}
	parser, err := kong.New(&grammar, kong.Resolvers(sources), kong.Vars{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(config.FlagNames(args)); err != nil {
		t.Errorf("%s: %v", node, err)
	}
	if err := grammar.CheckSettings(); err != nil {
		t.Errorf("%s: %v", node, err)
	}
	var environ []string
	for name, value := range environment {
		environ = append(environ, name+"="+value)
	}
	for _, warning := range config.UnknownVariables(environ, parser.Model, nil) {
		t.Errorf("%s: %s", node, warning)
	}
	return grammar.Config
}

// TestDebSettings checks the settings files of the Debian package: the lines
// that are set, and the ones that are commented out as examples.
func TestDebSettings(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("..", "..", "packaging", "deb")
	c := checkSettings(t, "atelier.yaml", []string{"--config", filepath.Join(folder, "atelier.yaml")}, nil)
	if c.Data != "/var/lib/atelier" {
		t.Errorf("data = %q", c.Data)
	}

	text, err := os.ReadFile(filepath.Join(folder, "atelier.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(all, regexp.MustCompile(`(?m)^#([a-z])`).ReplaceAll(text, []byte("$1")), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := checkSettings(t, "examples", []string{"--config", all}, nil); c.BaseURL != "https://atelier.example.com" {
		t.Errorf("base_url of the examples = %q", c.BaseURL)
	}

	text, err = os.ReadFile(filepath.Join(folder, "environment"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#(ATELIER_[A-Z0-9_]+)=`).FindAllStringSubmatch(string(text), -1) {
		names[m[1]] = ""
	}
	if len(names) < 5 {
		t.Errorf("the file environment has %d examples", len(names))
	}
	checkSettings(t, "environment", nil, names)
}

// composeFile is the part of a compose file that the test looks at.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Command     []string
		Environment map[string]string
		Ports       []string
		Networks    []string
	}
	Volumes  map[string]any
	Networks map[string]any
	Configs  map[string]struct{ Content string }
}

// TestComposeFile reads the compose file of a release and checks every node's
// settings, and that its image has the name under which the image is loaded.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "compose.yaml")
	if err := writeCompose(testSource(), file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f composeFile
	if err := yaml.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	want := []string{"api-1", "api-2", "postgres", "proxy", "s3", "worker-1", "worker-2"}
	if got := slices.Sorted(maps.Keys(f.Services)); !slices.Equal(got, want) {
		t.Errorf("services = %q, want %q", got, want)
	}
	given := map[string]string{
		"POSTGRES_PASSWORD": "password",
		"S3_ACCESS_KEY":     "access",
		"S3_SECRET_KEY":     "secret",
		"ATELIER_SECRET":    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
	}
	for name, s := range f.Services {
		if s.Image == "" || !slices.Equal(s.Networks, []string{"inner"}) {
			t.Errorf("%s has the image %q and the networks %q", name, s.Image, s.Networks)
		}
		if len(s.Ports) > 0 && name != "proxy" {
			t.Errorf("%s is reachable from outside", name)
		}
		role, _, node := strings.Cut(name, "-")
		if !node {
			continue
		}
		if image := expandVariables(t, s.Image, given); image != path.Base(imageName)+":1.2.0-rc1" {
			t.Errorf("%s uses the image %s", name, image)
		}
		environment := map[string]string{}
		for key, value := range s.Environment {
			environment[key] = expandVariables(t, value, given)
		}
		c := checkSettings(t, name, s.Command[1:], environment)
		if s.Command[0] != "serve" || !slices.Equal(c.Roles, []string{role}) {
			t.Errorf("%s runs %q with the roles %q", name, s.Command, c.Roles)
		}
		if !strings.HasPrefix(c.DatabaseURL(), "postgres://atelier:password@postgres/") || !strings.HasPrefix(c.BlobsURL(), "s3://atelier?endpoint=http://s3:7070") {
			t.Errorf("%s uses the database %s and the files %s", name, c.DatabaseURL(), c.BlobsURL())
		}
		if proxy := f.Configs["caddyfile"].Content; role == "api" && !strings.Contains(proxy, name+":8080") {
			t.Errorf("the proxy does not know %s", name)
		}
	}
}

// composeVariable matches ${NAME}, ${NAME:-default} and ${NAME:?message}.
var composeVariable = regexp.MustCompile(`\$\{([A-Z0-9_]+)(?:(:-|:\?)([^}]*))?\}`)

// expandVariables replaces the variables of a compose file.
func expandVariables(t *testing.T, text string, given map[string]string) string {
	t.Helper()
	return composeVariable.ReplaceAllStringFunc(text, func(found string) string {
		m := composeVariable.FindStringSubmatch(found)
		if value := given[m[1]]; value != "" {
			return value
		}
		if m[2] != ":-" {
			t.Errorf("%s is not given", m[1])
		}
		return m[3]
	})
}

// TestChart renders the chart for each values file of build/chart and checks
// the objects. It needs no Helm: the chart uses few functions.
func TestChart(t *testing.T) {
	t.Parallel()
	for _, name := range chartValues(t) {
		objects := renderChart(t, name)
		checkChartNodes(t, name, objects)
		kinds := map[string]int{}
		for key := range objects {
			kind, _, _ := strings.Cut(key, " ")
			kinds[kind]++
		}
		want := chartKinds[name]
		if !maps.Equal(kinds, want) {
			t.Errorf("%s: objects = %v, want %v", name, kinds, want)
		}
	}
}

// chartKinds are the objects that the values files of build/chart ask for.
var chartKinds = map[string]map[string]int{
	"minimal": {
		"ConfigMap":               1,
		"Deployment":              2,
		"HorizontalPodAutoscaler": 2,
		"PodDisruptionBudget":     2,
		"Secret":                  1,
		"Service":                 2,
		"ServiceAccount":          1,
	},
	"full": {
		"ConfigMap":               2, // the settings and the backends file
		"Deployment":              3, // API nodes, workers, and workers for a pool
		"HorizontalPodAutoscaler": 1,
		"Ingress":                 1,
		"PodDisruptionBudget":     3,
		"ScaledObject":            1,
		"Service":                 2,
		"ServiceAccount":          1,
	},
}

// TestChartFollowsQueue checks that the workers for a pool read its backend from
// the mounted file, and that KEDA asks an address and for a pool that exist.
func TestChartFollowsQueue(t *testing.T) {
	t.Parallel()
	objects := renderChart(t, "full")
	file := filepath.Join(t.TempDir(), "backends.yaml")
	text := fmt.Sprint(descend(objects["ConfigMap studio-backends"], "data")["backends.yaml"])
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	backends, err := config.ReadBackends(file, os.Getenv)
	if err != nil || len(backends) != 1 || backends["flux"].Pool != "gpu" {
		t.Errorf("backends = %v, %v", backends, err)
	}

	ports := descend(objects["Service studio-metrics"], "spec")["ports"].([]any)
	address := fmt.Sprintf("http://studio-metrics.default:%v/pools", ports[0].(map[string]any)["port"])
	spec := descend(objects["ScaledObject studio-worker-gpu"], "spec")
	if spec["minReplicaCount"] != 0 || descend(spec, "scaleTargetRef")["name"] != "studio-worker-gpu" {
		t.Errorf("the scaled object is %v", spec)
	}
	for i, state := range []string{"waiting", "running"} {
		trigger := descend(spec["triggers"].([]any)[i].(map[string]any), "metadata")
		want := `pools.#(name=="gpu").` + state
		if trigger["url"] != address || trigger["valueLocation"] != want || trigger["targetValue"] != "4" {
			t.Errorf("KEDA asks %v, want %s of %s", trigger, want, address)
		}
	}
}

// TestChartIsAsHelmRendersIt compares the objects of TestChart with the files
// that build/chart wrote with Helm, after it checked them with the types of the
// Kubernetes API.
func TestChartIsAsHelmRendersIt(t *testing.T) {
	t.Parallel()
	for _, name := range chartValues(t) {
		rendered, err := os.ReadFile(filepath.Join("..", "chart", "testdata", name+".rendered.yaml"))
		if errors.Is(err, fs.ErrNotExist) {
			t.Skipf("%s was not rendered with Helm yet: run go run . in build/chart", name)
		}
		if err != nil {
			t.Fatal(err)
		}
		objects := renderChart(t, name)
		want := readObjects(t, string(rendered))
		if got, want := slices.Sorted(maps.Keys(objects)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
			t.Errorf("%s: objects = %q, Helm has %q", name, got, want)
		}
		for key, object := range objects {
			if got, want := toYAML(t, withoutChecksums(object)), toYAML(t, withoutChecksums(want[key])); got != want {
				t.Errorf("%s: %s is not as Helm renders it (run go run . in build/chart after a change)\n%s\nHelm:\n%s", name, key, got, want)
			}
		}
	}
}

// chartValues returns the names of the values files of build/chart.
func chartValues(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "chart", "testdata", "*.values.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("values files = %q, %v", files, err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".values.yaml"))
	}
	return names
}

// checkChartNodes checks that the deployments have probes and run as the
// image's user, and that their settings are valid.
func checkChartNodes(t *testing.T, name string, objects map[string]map[string]any) {
	t.Helper()
	environment := map[string]string{}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		for _, part := range []string{"data", "stringData"} {
			values, _ := objects[kind+" studio"][part].(map[string]any)
			for key, value := range values {
				environment[key] = fmt.Sprint(value)
			}
		}
	}
	for key, object := range objects {
		component, ok := strings.CutPrefix(key, "Deployment studio-")
		if !ok {
			continue
		}
		role, pool, _ := strings.Cut(component, "-")
		spec := descend(object, "spec", "template", "spec")
		if user := descend(spec, "securityContext")["runAsUser"]; user != imageUser {
			t.Errorf("%s: %s runs as user %v", name, role, user)
		}
		container := spec["containers"].([]any)[0].(map[string]any)
		for probe, path := range map[string]string{"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"} {
			if got := descend(container, probe, "httpGet")["path"]; got != path {
				t.Errorf("%s: %s of %s = %v, want %s", name, probe, role, got, path)
			}
		}
		var args []string
		for _, a := range container["args"].([]any) {
			args = append(args, fmt.Sprint(a))
		}
		c := checkSettings(t, name+" "+role, args[1:], environment)
		if args[0] != "serve" || !slices.Equal(c.Roles, []string{role}) {
			t.Errorf("%s: %s runs %q", name, component, args)
		}
		if pool != "" && !slices.Equal(c.Pools, []string{pool}) {
			t.Errorf("%s: %s serves the pools %q", name, component, c.Pools)
		}
		grace, _ := spec["terminationGracePeriodSeconds"].(int)
		if ours := int((c.Shutdown.Delay + c.Shutdown.Timeout) / 1e9); grace <= ours {
			t.Errorf("%s: Kubernetes waits %d s for %s, the service needs up to %d s", name, grace, role, ours)
		}
	}
}

// descend returns a map inside of maps, or nil.
func descend(m map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// withoutChecksums removes the annotations that depend on the formatting of
// YAML.
func withoutChecksums(object map[string]any) map[string]any {
	annotations := descend(object, "spec", "template", "metadata", "annotations")
	maps.DeleteFunc(annotations, func(name string, _ any) bool { return strings.HasPrefix(name, "checksum/") })
	return object
}

// renderChart renders the chart for a values file of build/chart and returns the
// objects by kind and name.
func renderChart(t *testing.T, name string) map[string]map[string]any {
	t.Helper()
	folder := filepath.Join("..", "..", "packaging", "chart")
	values := readYAML(t, filepath.Join(folder, "values.yaml"))
	mergeValues(values, readYAML(t, filepath.Join("..", "chart", "testdata", name+".values.yaml")))
	data := map[string]any{
		"Values":  values,
		"Chart":   map[string]any{"AppVersion": ""},
		"Release": map[string]any{"Name": "studio", "Service": "Helm", "Namespace": "default"},
	}
	templates := template.New("chart").Option("missingkey=zero")
	templates.Funcs(chartFunctions(t, templates))
	if _, err := templates.ParseGlob(filepath.Join(folder, "templates", "*")); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, one := range templates.Templates() {
		if filepath.Ext(one.Name()) != ".yaml" {
			continue
		}
		text.WriteString("---\n")
		if err := one.Execute(&text, data); err != nil {
			t.Fatal(err)
		}
		text.WriteString("\n")
	}
	return readObjects(t, text.String())
}

// chartFunctions returns those of Helm's template functions that the chart uses.
func chartFunctions(t *testing.T, templates *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := templates.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"dict": func(pairs ...any) map[string]any {
			m := map[string]any{}
			for i := 0; i+1 < len(pairs); i += 2 {
				m[fmt.Sprint(pairs[i])] = pairs[i+1]
			}
			return m
		},
		"list": func(values ...any) []any { return values },
		"join": func(separator string, values []any) string {
			var texts []string
			for _, value := range values {
				texts = append(texts, fmt.Sprint(value))
			}
			return strings.Join(texts, separator)
		},
		"coalesce": func(values ...any) any {
			for _, value := range values {
				if value != nil && value != "" {
					return value
				}
			}
			return nil
		},
		"deepCopy": func(m map[string]any) map[string]any {
			var fresh map[string]any
			if err := yaml.Unmarshal([]byte(toYAML(t, m)), &fresh); err != nil {
				t.Fatal(err)
			}
			return fresh
		},
		"mergeOverwrite": func(base, over map[string]any) map[string]any {
			mergeValues(base, over)
			return base
		},
		"omit": func(m map[string]any, keys ...string) map[string]any {
			m = maps.Clone(m)
			for _, key := range keys {
				delete(m, key)
			}
			return m
		},
		"required": func(message string, value any) (any, error) {
			if value == nil || value == "" {
				return nil, errors.New(message)
			}
			return value, nil
		},
		"nindent": func(n int, text string) string {
			space := "\n" + strings.Repeat(" ", n)
			return space + strings.ReplaceAll(text, "\n", space)
		},
		"quote":      func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"toYaml":     func(value any) string { return toYAML(t, value) },
		"sha256sum":  func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"trunc":      func(n int, text string) string { return text[:min(n, len(text))] },
		"trimSuffix": func(suffix, text string) string { return strings.TrimSuffix(text, suffix) },
	}
}

// mergeValues puts the values of over into base, map by map.
func mergeValues(base, over map[string]any) {
	for key, value := range over {
		below, isMap := value.(map[string]any)
		if old, ok := base[key].(map[string]any); ok && isMap {
			mergeValues(old, below)
		} else {
			base[key] = value
		}
	}
}

func readYAML(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return values
}

// toYAML writes a value as Helm does, indented by two spaces.
func toYAML(t *testing.T, value any) string {
	t.Helper()
	var text strings.Builder
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := e.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// readObjects returns the objects of a YAML stream by kind and name.
func readObjects(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	objects := map[string]map[string]any{}
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var object map[string]any
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if object != nil {
			objects[fmt.Sprint(object["kind"], " ", descend(object, "metadata")["name"])] = object
		}
	}
}
