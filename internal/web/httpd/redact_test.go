package httpd_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"atelier/internal/testkit/watch"
	"atelier/internal/web/httpd"
)

// TestSecretsInAddresses puts secrets where people and programs put them, and
// looks for them in the log, the metrics and the traces.
func TestSecretsInAddresses(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	metrics := prometheus.NewRegistry()
	mux := http.NewServeMux()
	for _, route := range []string{"/api/v2/runs/{run_id}", "/media/{kind}/{id}/{variant}/{name}", "/link/{token}"} {
		mux.HandleFunc(route, func(_ http.ResponseWriter, r *http.Request) { httpd.RecordOf(r.Context()).Route = route })
	}
	url, log, _, _ := serve(t, mux, httpd.Options{Metrics: metrics, Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")})

	secrets := []string{
		"atl_p_" + strings.Repeat("A1b2", 11), "atl_c_x", "atl_r_" + strings.Repeat("z", 43), "whsec_c2VjcmV0", "hunter2", "Swordfish",
		"eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2ln", "0f8fad5b-d9cb-469f-a165-70867728950e", "deadbeefdeadbeefdeadbeefdeadbeef",
		"AKIAIOSFODNN7EXAMPLE", "abcdefghijklmnopqrstuvwxyzabc", "geheim%2Fcode%0A1", "anna@example.com",
	}
	places := []string{"/%s", "/api/v2/%s", "/api/v2/runs/x1/%s", "/api/v2/unknown/%s/more", "/link/a/%s", "/x?%s", "/x?limit=%s", "/x?token=%s", "/x?status=%s&limit=3", "/a/b/c/d/e/f/g/h/i/j/k/l/m/%s"}
	for _, secret := range secrets {
		for _, place := range places {
			if strings.Contains(place, "status") && secret == "Swordfish" {
				continue // a word, as a status is
			}
			fetch(t, url+fmt.Sprintf(place, secret))
		}
	}
	fetch(t, url+"/media/u/x/file/swordfish.png") // a word, and what somebody called a file
	for _, secret := range []string{secrets[0], secrets[3], "hunter2"} {
		fetch(t, url+"/api/v2/runs/"+secret)
		fetch(t, url+"/link/"+secret)
		r, _ := http.NewRequest("X-"+secret, url+"/x", nil)
		if res, err := http.DefaultClient.Do(r); err == nil {
			res.Body.Close()
		}
	}
	fetch(t, url+"/api/v2/runs/ABCDEFGHIJ0123456789?limit=20&status=QUEUED&start_utc=2026-01-02T03:04:05Z&tool_id=ABCDEFGHIJ0123456789")
	watch.Until(t, "the last line", func() bool { return strings.Contains(log.String(), "limit=20") })

	text := log.String()
	if want := `"route":"/api/v2/runs/{run_id}","path":"/api/v2/runs/ABCDEFGHIJ0123456789"`; !strings.Contains(text, want) {
		t.Errorf("the log has no %s", want)
	}
	if want := `limit=20&status=QUEUED&start_utc=2026-01-02T03:04:05Z&tool_id=ABCDEFGHIJ0123456789`; !strings.Contains(strings.ReplaceAll(text, `\u0026`, "&"), want) {
		t.Errorf("the log has no %s", want)
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var traced strings.Builder
	for _, span := range spans.Ended() {
		fmt.Fprintln(&traced, span.Name(), span.Attributes())
	}
	for where, all := range map[string]string{"log": text, "metrics": fmt.Sprint(families), "traces": traced.String()} {
		for _, secret := range append(secrets, "geheim/code", "geheim", "swordfish.png") {
			if strings.Contains(all, secret) {
				i := strings.Index(all, secret)
				t.Errorf("the %s has %s: %.200s", where, secret, all[max(0, i-120):])
			}
		}
	}
}
