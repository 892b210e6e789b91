package e2e

import (
	"net/url"
	"os"
	"regexp"
	"testing"

	"atelier/internal/testkit/watch"
	"atelier/test/visitor"
)

// TestFirstHour does what a newcomer does: starts the program in an empty folder,
// opens the link that it prints, makes an access token, and runs a tool that
// costs tokens. Nobody grants them any.
func TestFirstHour(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		n := s.serve()
		var link []string
		watch.Until(t, "the set-up link", func() bool {
			link = regexp.MustCompile(`http://\S+/setup\?token=\w+`).FindStringSubmatch(n.stderr.String())
			return link != nil
		})
		anna := visitor.New(n.url)
		page, err := anna.Open(link[0])
		if err != nil {
			t.Fatal(err)
		}
		page, err = anna.Send(page, "/setup", url.Values{"email": {"anna@example.com"}, "password": {"correct horse battery"}})
		if err != nil || page.URL.Path != "/welcome" {
			t.Fatalf("the set-up led to %v, %v: %s", page.URL, err, page.HTML)
		}
		if page, err = anna.Open("/tokens"); err != nil {
			t.Fatal(err)
		}
		if page, err = anna.Send(page, "/tokens", url.Values{"name": {"first"}}); err != nil {
			t.Fatal(err)
		}
		token := regexp.MustCompile(`atl_p_\w{49}`).FindString(page.HTML)
		if token == "" {
			t.Fatalf("no token is shown: %s", page.HTML)
		}

		s.env = append(s.env, "ATELIER_TOKEN="+token, "ATELIER_SERVICE="+n.url)
		made := s.do("generate", "sketch", "prompt=red fox", "seed=5", "--out", t.TempDir())
		files := made["files"].([]any)
		charged := made["tokens_charged"].(float64)
		if len(files) != 1 || charged <= 0 {
			t.Fatalf("generate = %v", made)
		}
		if info, err := os.Stat(files[0].(string)); err != nil || info.Size() == 0 {
			t.Errorf("the result: %v, %v", info, err)
		}
		person := s.do("admin", "person", "show", "--email", "anna@example.com")
		if tokens := person["balance"].(map[string]any)["tokens"]; tokens != 1000-charged {
			t.Errorf("%v tokens are left, want 1000 less %v", tokens, charged)
		}
		s.check() // the grant is in the ledger and in the audit log alike
	})
}
