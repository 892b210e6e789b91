package policy

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fixedAnswer answers every request with the same response.
type fixedAnswer struct {
	status int
	body   string
}

func (a fixedAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	res := httptest.NewRecorder()
	res.WriteHeader(a.status)
	_, err := io.WriteString(res, a.body)
	answer := res.Result()
	answer.Request = r
	return answer, err
}

// FuzzModeratorAnswer proves that a text passes only if the moderator said so
// of every text: any other answer is an error, and the text that is named is
// the first that was flagged.
func FuzzModeratorAnswer(f *testing.F) {
	for _, body := range []string{
		`{"results": [{"flagged": false}, {"flagged": false}]}`, `{"results": [{"flagged": false}, {"flagged": true}]}`,
		`{"results": [{"flagged": true}, {"flagged": true}]}`, `{"results": [{"flagged": false}]}`, `{"results": [{}, {"flagged": false}]}`,
		`{"results": [{"flagged": null}, null]}`, `{"results": [{"flagged": "false"}, {"flagged": 0}]}`, `{"results": {"flagged": false}}`,
		`{"results": [{"flagged": false, "flagged": true}, {"flagged": false}]}`, `{}`, `null`, ``, `<html>`, `{"results": [{"flagged": false}, {"flagged": false}]} {`,
	} {
		f.Add(http.StatusOK, body)
	}
	f.Add(http.StatusFound, `{"results": [{"flagged": false}, {"flagged": false}]}`)
	f.Add(http.StatusTooManyRequests, `{}`)

	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 {
			return // net/http does not deliver such an answer
		}
		m, err := NewModerator(Options{URL: "https://moderator.example/v1"})
		if err != nil {
			t.Fatal(err)
		}
		m.client.Transport = fixedAnswer{status, body}
		path, flagged, err := m.askServer(t.Context(), []Text{{Path: "a", Value: "first"}, {Path: "blank", Value: " "}, {Path: "b", Value: "second"}})
		if flagged != (path != "") || flagged && err != nil {
			t.Errorf("%d %q = %q, %t, %v", status, body, path, flagged, err)
		}
		if err != nil {
			return
		}

		var said struct{ Results []map[string]any }
		if status != http.StatusOK || json.Unmarshal([]byte(body), &said) != nil || len(said.Results) != 2 {
			t.Fatalf("%d %q = %q, %t without an error", status, body, path, flagged)
		}
		if flagged && path != "a" && path != "b" {
			t.Errorf("%q names the text %q", body, path)
		}
		for i, result := range said.Results {
			for name, value := range result {
				if strings.EqualFold(name, "flagged") && value == true && len(result) == 1 && (!flagged || i == 0 && path != "a") {
					t.Errorf("%q = %q, %t", body, path, flagged)
				}
			}
		}
	})
}
