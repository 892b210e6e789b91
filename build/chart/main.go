// Command chart checks the Helm chart in packaging/chart with Helm itself: it
// lints the chart, renders it for each values file in testdata, and decodes
// every object into the types of the Kubernetes API, in which an unknown field
// is an error. It writes the rendered objects to testdata/NAME.rendered.yaml,
// which the tests of build/release compare with the chart.
//
//	cd build/chart && go run .            write the files
//	cd build/chart && go run . -check     fail if they are outdated
//
// It is a module of its own, because Helm brings several hundred packages.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// chartFolder is the chart, seen from the folder of this program.
const chartFolder = "../../packaging/chart"

// releaseName is the name of the release in the rendered files.
const releaseName = "studio"

func main() {
	check := flag.Bool("check", false, "write nothing, and fail if a file is outdated")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) == 0 {
		return errors.Join(err, errors.New("no values files in testdata; run this program in build/chart"))
	}
	for _, file := range files {
		values, err := chartutil.ReadValuesFile(file)
		if err != nil {
			return err
		}
		if err := lintChart(values); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		text, err := renderChart(values)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		objects, err := checkObjects(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		target := strings.TrimSuffix(file, ".values.yaml") + ".rendered.yaml"
		if err := writeOrCompare(target, text, check); err != nil {
			return err
		}
		fmt.Printf("%s: %d objects\n", target, objects)
	}
	return nil
}

// lintChart returns an error with all messages of helm lint above information.
func lintChart(values map[string]any) error {
	var problems []error
	for _, m := range lint.All(chartFolder, values, "default", true).Messages {
		if m.Severity > support.InfoSev {
			problems = append(problems, fmt.Errorf("lint: %s: %w", m.Path, m.Err))
		}
	}
	return errors.Join(problems...)
}

// renderChart returns all objects of the chart as one YAML stream, the
// templates in the order of their names.
func renderChart(values map[string]any) (string, error) {
	c, err := loader.Load(chartFolder)
	if err != nil {
		return "", err
	}
	options := chartutil.ReleaseOptions{Name: releaseName, Namespace: "default", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if content := strings.TrimSpace(rendered[name]); content != "" && strings.HasSuffix(name, ".yaml") {
			fmt.Fprintf(&text, "---\n# %s\n%s\n", name, content)
		}
	}
	return text.String(), nil
}

// checkObjects decodes every object strictly and returns their number.
func checkObjects(text string) (int, error) {
	n := 0
	for document := range strings.SplitSeq(text, "---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			return n, err
		}
		object, err := newObject(head.APIVersion + " " + head.Kind)
		if err != nil {
			return n, err
		}
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			return n, fmt.Errorf("%s: %w", head.Kind, err)
		}
		n++
	}
	return n, nil
}

// newObject returns an empty object of a kind of the Kubernetes API.
func newObject(kind string) (any, error) {
	switch kind {
	case "apps/v1 Deployment":
		return &appsv1.Deployment{}, nil
	case "autoscaling/v2 HorizontalPodAutoscaler":
		return &autoscalingv2.HorizontalPodAutoscaler{}, nil
	case "keda.sh/v1alpha1 ScaledObject":
		return &scaledObject{}, nil
	case "networking.k8s.io/v1 Ingress":
		return &networkingv1.Ingress{}, nil
	case "policy/v1 PodDisruptionBudget":
		return &policyv1.PodDisruptionBudget{}, nil
	case "v1 ConfigMap":
		return &corev1.ConfigMap{}, nil
	case "v1 Secret":
		return &corev1.Secret{}, nil
	case "v1 Service":
		return &corev1.Service{}, nil
	case "v1 ServiceAccount":
		return &corev1.ServiceAccount{}, nil
	}
	return nil, fmt.Errorf("%s is not a kind that this program checks: add it to newObject", kind)
}

// scaledObject has the fields of KEDA's ScaledObject that the chart may use.
// KEDA's own type would bring all of KEDA.
type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount *int32 `json:"minReplicaCount"`
		MaxReplicaCount *int32 `json:"maxReplicaCount"`
		Triggers        []struct {
			Type     string            `json:"type"`
			Metadata map[string]string `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

func writeOrCompare(path, text string, check bool) error {
	if !check {
		return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // for everybody
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if string(old) != text {
		return fmt.Errorf("%s is outdated: run go run . in build/chart", path)
	}
	return nil
}
