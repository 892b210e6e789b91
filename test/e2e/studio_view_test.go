package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"atelier/internal/testkit/watch"
)

// mostShift is the largest layout shift that the first view of Create may have.
const mostShift = 0.02

// TestStudioFirstView loads Create with a feed of 20 runs: nothing moves while
// the page fills. The time until the page can be used is logged, since it
// depends on the machine.
func TestStudioFirstView(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		giveTools(t, s)
		s.env = append(s.env, "ATELIER_LIMITS_CREATE_PER_MINUTE=100", "ATELIER_LIMITS_ACTIVE_RUNS=100")
		n := s.serve()
		b := openStudio(t, n)
		n.token = s.do("admin", "token", "create", "--email", "anna@example.com", "--name", "test")["token"].(string)
		id := n.tools("", nil)["Painter"]
		hash := n.json("/api/v2/tools/" + id)["tool_fields_hash"]
		for at := range 20 {
			order, err := json.Marshal(map[string]any{
				"tool_id": id, "tool_fields_hash": hash, "num_results": 1 + at%4,
				"inputs": map[string]any{"prompt": fmt.Sprintf("kite %d", at)},
			})
			if err != nil {
				t.Fatal(err)
			}
			n.call("POST", "/api/v2/generate", string(order)).want(t, 202)
		}
		watch.Until(t, "the end of the runs", func() bool {
			return len(n.json("/api/v2/generations?limit=100&status=succeeded")["data"].([]any)) == 20
		})

		for _, width := range []int{1280, 390} {
			b.Size(width, 850)
			b.Goto(n.url + "/create/" + id)
			b.See("article", "kite 19")
			b.Until(aPictureIsThere)
			b.Until(`document.querySelector("main [aria-busy=true]") === null`)
			said := b.Eval(`new Promise(done => {
				let shift = 0;
				const add = list => { for (const entry of list.getEntries()) if (!entry.hadRecentInput) shift += entry.value };
				const observer = new PerformanceObserver(add);
				observer.observe({type: "layout-shift", buffered: true});
				setTimeout(() => { add({getEntries: () => observer.takeRecords()}); done(String(shift)) }, 300);
			})`)
			shift, err := strconv.ParseFloat(said, 64)
			if err != nil {
				t.Fatal(err)
			}
			if shift >= mostShift {
				t.Errorf("at %d pixels the page shifts by %.4f while it loads, want less than %.2f", width, shift, mostShift)
			}
			t.Logf("at %d pixels: layout shift %.4f, DOM interactive after %s ms, first content after %s ms", width, shift,
				b.Eval(`String(Math.round(performance.getEntriesByType("navigation")[0].domInteractive))`),
				b.Eval(`String(Math.round(performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1))`))
		}
		wantNoComplaints(t, b)
		n.stop()
		s.check()
	})
}
