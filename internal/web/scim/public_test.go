package scim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/servers"
)

// tester has the paths of the public tester on this machine.
type tester struct{ python, check string }

// prepare installs the versions that test/scimclient locks, if this machine
// does not have them yet.
var prepare = sync.OnceValues(func() (tester, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	source, err := servers.Source(ctx, "scimclient")
	if err != nil {
		return tester{}, err
	}
	bin, err := servers.Python(ctx, source, "scim")
	if err != nil {
		return tester{}, fmt.Errorf("scim2-tester: %w", err)
	}
	return tester{filepath.Join(bin, "python"), filepath.Join(source, "check.py")}, nil
})

// TestPublicTester runs scim2-tester, which checks the schemas and all
// operations on users and groups. ATELIER_TEST_SCIM=skip skips it.
func TestPublicTester(t *testing.T) {
	t.Parallel()
	for _, engine := range dbtest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			public := servers.Need(t, "SCIM tester", "ATELIER_TEST_SCIM", prepare)
			w := open(t, engine, 0)
			cmd := exec.CommandContext(t.Context(), public.python, public.check, w.url+"/scim/v2", "fox.example")
			cmd.Stdin = strings.NewReader(w.token)
			var complaints strings.Builder
			cmd.Stderr = &complaints
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, complaints.String())
			}
			seen := map[string]int{}
			for line := range strings.Lines(string(out)) {
				var r struct{ Status, Title, Resource, Reason, Data string }
				w.ok(json.Unmarshal([]byte(line), &r))
				seen[r.Resource+" "+r.Title]++
				if r.Status != "SUCCESS" {
					t.Errorf("%s %s is %s: %s %s", r.Resource, r.Title, r.Status, r.Reason, r.Data)
				}
			}
			for _, of := range []string{"User", "Group"} {
				for _, title := range []string{"object_creation", "object_query", "object_query_without_id", "object_query_with_attributes", "object_list_with_attributes", "search_with_attributes",
					"object_replacement", "object_deletion", "check_add_attribute", "check_remove_attribute", "check_replace_attribute"} {
					if seen[of+" "+title] == 0 {
						t.Errorf("%s of a %s was not checked", title, of)
					}
				}
			}
		})
	}
}
