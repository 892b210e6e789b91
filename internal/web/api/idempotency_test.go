package api_test

import (
	"fmt"
	"strings"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/run/generation"
)

func TestKeysHaveAShape(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		for _, x := range []struct {
			name string
			keys []string
			ok   bool
		}{
			{"one character", []string{"!"}, true}, {"254", []string{strings.Repeat("k", 254)}, true}, {"255", []string{strings.Repeat("k", 255)}, true}, {"256", []string{strings.Repeat("k", 256)}, false},
			{"empty", []string{""}, false}, {"a space inside", []string{"a b"}, false}, {"a tab inside", []string{"a\tb"}, false}, {"not ASCII", []string{"kü"}, false}, {"a high byte", []string{"k\xff"}, false},
			{"two headers", []string{"a", "b"}, false}, {"two equal headers", []string{"a", "a"}, false}, {"all that is visible", []string{`!"#$%&'()*+,-./:;<=>?@[\]^_{|}~`}, true}, {"quoted", []string{`"8e03978e"`}, true},
		} {
			var header []string
			for _, key := range x.keys {
				header = append(header, "Idempotency-Key", key)
			}
			a := m.create(m.body("one", ""), header...)
			if x.ok {
				a.checkStatus(t, x.name, 202, "")
			} else if a.checkStatus(t, x.name, 400, "INVALID_REQUEST"); !strings.Contains(string(a.body), `"path":"Idempotency-Key"`) {
				t.Errorf("%s = %s", x.name, a.body)
			}
		}
	})
}

// TestSameRequests is the table of T38.
func TestSameRequests(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		tool := m.made["wide"]
		id, hash := fmt.Sprintf(`"tool_id":%q`, tool.ID), fmt.Sprintf(`"tool_fields_hash":%q`, tool.ToolFieldsHash)
		first := `{` + id + `,` + hash + `,"num_results":1,"inputs":{"prompt":"a/b ü","amount":1},"metadata":{"a":1,"b":[1,2]},"plugin":"p"}`
		original := m.create(first, "Idempotency-Key", "k1").checkStatus(t, "the first", 202, "")
		same := []string{
			first, " " + first + "\n",
			strings.ReplaceAll(first, `,"`, " ,\n\t\""),
			strings.ReplaceAll(first, `":`, `" : `),
			`{` + hash + `,` + id + `,"plugin":"p","metadata":{"b":[1,2],"a":1},"inputs":{"amount":1,"prompt":"a/b ü"},"num_results":1}`,
			strings.Replace(first, "a/b ü", `a\/b \u00fc`, 1), strings.Replace(first, "a/b ü", `\u0061/\u0062 \u00FC`, 1),
			strings.Replace(first, `"plugin"`, `"\u0070lugin"`, 1), strings.Replace(first, `"plugin":"p"`, `"plugin":"\u0070"`, 1),
			strings.Replace(first, `[1,2]`, "[ 1 , 2 ]", 1), strings.Replace(first, `"a":1`, `"\u0061":1`, 1),
			strings.Replace(first, `"prompt"`, `"prom\u0070t"`, 1),
		}
		other := []string{
			strings.Replace(first, `"num_results":1`, `"num_results":1.0`, 1), strings.Replace(first, `"num_results":1`, `"num_results":2`, 1), strings.Replace(first, `"num_results":1`, `"num_results":1e0`, 1),
			strings.Replace(first, `"num_results":1,`, ``, 1), strings.Replace(first, `"num_results":1`, `"num_results":null`, 1), strings.Replace(first, `"num_results":1`, `"num_results":"1"`, 1),
			strings.Replace(first, `"amount":1`, `"amount":1.0`, 1), strings.Replace(first, `"amount":1`, `"amount":10e-1`, 1), strings.Replace(first, `"amount":1`, `"amount":2`, 1),
			strings.Replace(first, "a/b ü", "a/b u\u0308", 1), strings.Replace(first, "a/b ü", "a/b ü ", 1), strings.Replace(first, "a/b ü", "A/b ü", 1),
			strings.Replace(first, `"a":1`, `"a":2`, 1), strings.Replace(first, `"a":1`, `"a":"1"`, 1), strings.Replace(first, `[1,2]`, `[2,1]`, 1), strings.Replace(first, `[1,2]`, `[1]`, 1), strings.Replace(first, `"a":1,`, ``, 1),
			strings.Replace(first, `,"plugin":"p"`, ``, 1), strings.Replace(first, `"p"}`, `"q"}`, 1), strings.Replace(first, `"plugin"`, `"Plugin"`, 1),
			`{"new":null,` + first[1:], `{"unknown":1,` + first[1:], strings.Replace(first, tool.ToolFieldsHash, "v1:x", 1), strings.Replace(first, tool.ID, m.made["one"].ID, 1),
			`{"tool_id":"x",` + first[1:], `{}`, `[]`, `null`, ``, `{`, first + "x", "\ufeff" + first, strings.Repeat("[", 70) + strings.Repeat("]", 70),
		}
		if n := len(same) + len(other); n < 40 {
			t.Fatalf("there are %d variants", n)
		}
		m.unchanged("replays and conflicts", func() {
			for _, body := range same {
				a := m.create(body, "Idempotency-Key", "k1").checkStatus(t, body, 202, "")
				if string(a.body) != string(original.body) || a.Header.Get("Idempotent-Replayed") != "true" || a.Header.Get("Retry-After") != original.Header.Get("Retry-After") ||
					a.Header.Get("RateLimit-Policy") != original.Header.Get("RateLimit-Policy") || !strings.Contains(a.Header.Get("RateLimit"), `;r=9999;`) {
					t.Errorf("the replay of %s is %s with %v", body, a.body, a.Header)
				}
			}
			for _, body := range other {
				a := m.create(body, "Idempotency-Key", "k1").checkStatus(t, body, 409, "IDEMPOTENCY_KEY_CONFLICT")
				if e := a.readError(t); e.Retryable || len(e.Details) != 0 {
					t.Errorf("%s = %s", body, a.body)
				}
			}
			for range 2 { // the same as a form without files, whatever its boundary
				if a := m.createForm([]part{payload(first), {name: "note", data: "for somebody else"}}, "Idempotency-Key", "k1"); string(a.body) != string(original.body) {
					t.Errorf("as a form = %d %s", a.StatusCode, a.body)
				}
			}
			m.createForm([]part{payload(first), file(picture(2, 2))}, "Idempotency-Key", "k1").checkStatus(t, "one file more", 409, "IDEMPOTENCY_KEY_CONFLICT")
		})
		if original.Header.Get("Idempotent-Replayed") != "" {
			t.Error("the first answer says that it is a replay")
		}
	})
}

func TestSameFiles(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		body, red, blue := m.body("one", named(2)), file(picture(3, 3)), file(picture(4, 4))
		original := m.createForm([]part{payload(body), red, blue}, "Idempotency-Key", "k").checkStatus(t, "the first", 202, "")
		if n := m.blobs(); n != 2 { // inputs have no thumbnail
			t.Errorf("there are %d files, want two", n)
		}
		renamed := red
		renamed.file, renamed.kind = "other.png", "image/png"
		m.unchanged("replays and conflicts", func() {
			for name, parts := range map[string][]part{
				"again": {payload(body), red, blue}, "the payload last": {red, blue, payload(body)}, "another name": {renamed, payload(body), blue},
			} {
				if a := m.createForm(parts, "Idempotency-Key", "k"); string(a.body) != string(original.body) || a.Header.Get("Idempotent-Replayed") != "true" {
					t.Errorf("%s = %d %s", name, a.StatusCode, a.body)
				}
			}
			longer := red
			longer.data += "x"
			for name, parts := range map[string][]part{
				"other order": {payload(body), blue, red}, "one less": {payload(body), red}, "one more": {payload(body), red, blue, red}, "one byte more": {payload(body), longer, blue},
				"none": {payload(body)}, "no picture": {payload(body), file([]byte("hello")), blue}, "an empty one": {payload(body), file(nil), blue},
			} {
				m.createForm(parts, "Idempotency-Key", "k").checkStatus(t, name, 409, "IDEMPOTENCY_KEY_CONFLICT")
			}
		})
	})
}

func TestKeysBelongToPeople(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, limits, func(c *generation.Settings) { c.CreatePerMinute = 3 })
		good := m.body("one", "")
		m.create(m.body("one", `,"inputs":{"x":1}`), "Idempotency-Key", "k").checkStatus(t, "refused", 400, "INVALID_REQUEST")
		original := m.create(good, "Idempotency-Key", "k").checkStatus(t, "another request after a refusal", 202, "")

		bert := m.as(m.addPerson("bert@example.com"))
		m.grant("bert@example.com", "", 100)
		a := bert.create(good, "Idempotency-Key", "k").checkStatus(t, "another person's key", 202, "")
		if a.Header.Get("Idempotent-Replayed") != "" || string(a.body) == string(original.body) {
			t.Errorf("another person got %s", a.body)
		}

		team, tokens := m.team("Look", "anna@example.com")
		inTeam := m.as(tokens[0]).send("POST", "/api/v2/generate?team_id="+team, "application/json", strings.NewReader(good), "Idempotency-Key", "k")
		inTeam.checkStatus(t, "the same for a team", 409, "IDEMPOTENCY_KEY_CONFLICT")

		for i := range 2 {
			m.create(good, "Idempotency-Key", fmt.Sprint(i)).checkStatus(t, "create", 202, "")
		}
		m.create(good, "Idempotency-Key", "new").checkStatus(t, "too fast", 429, "RATE_LIMITED")
		m.unchanged("replays cost nothing", func() {
			for range 5 {
				if a := m.create(good, "Idempotency-Key", "k"); string(a.body) != string(original.body) {
					t.Errorf("a replay while the rate is used up = %d %s", a.StatusCode, a.body)
				}
			}
		})
	})
}

// TestOneKeyAtOnce sends one request many times at once: one run is made, and
// all are told of it.
func TestOneKeyAtOnce(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		answers := make(chan answer, 12)
		for range cap(answers) {
			go func() {
				answers <- m.createForm([]part{payload(m.body("one", named(1))), file(picture(3, 3))}, "Idempotency-Key", "k")
			}()
		}
		bodies, first := map[string]bool{}, 0
		for range cap(answers) {
			a := (<-answers).checkStatus(t, "one of many", 202, "")
			bodies[string(a.body)] = true
			if a.Header.Get("Idempotent-Replayed") == "" {
				first++
			}
		}
		if len(bodies) != 1 || first != 1 {
			t.Errorf("there are %d answers, %d of them first", len(bodies), first)
		}
		if n := m.blobs(); n != 1 { // inputs have no thumbnail
			t.Errorf("%d files are left, want one", n)
		}
	})
}

// TestNumericOptionsAsText has a form send the text of a number: the run has the
// number, the price is the same, and to a key it is another request.
func TestNumericOptionsAsText(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		asText, asNumber := m.body("one", `,"inputs":{"factor":"4"}`), m.body("one", `,"inputs":{"factor":4}`)
		first := m.create(asText, "Idempotency-Key", "k").checkStatus(t, "text", 202, "")
		if again := m.create(asText, "Idempotency-Key", "k"); string(again.body) != string(first.body) {
			t.Errorf("the replay = %s", again.body)
		}
		m.create(asNumber, "Idempotency-Key", "k").checkStatus(t, "another body", 409, "IDEMPOTENCY_KEY_CONFLICT")
		m.create(m.body("one", `,"inputs":{"factor":"3"}`)).checkStatus(t, "no option", 400, "INVALID_REQUEST")

		var inputs string
		if err := m.parts.DB.QueryRow(t.Context(), `SELECT inputs FROM run`).Scan(&inputs); err != nil || inputs != `{"factor":4}` {
			t.Errorf("the run has %s, %v", inputs, err)
		}
		price := func(body string) string {
			return string(m.send("POST", "/api/v2/generate/preview-cost", "application/json", strings.NewReader(body)).checkStatus(t, "price", 200, "").body)
		}
		if a, b := price(asText), price(asNumber); a != b {
			t.Errorf("prices: %s and %s", a, b)
		}
	})
}
