package main

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"atelier/internal/catalog/catalog"
)

// FuzzParseInput proves that a value of the command line is refused with a
// reason, or has the form in which the service takes it: it can be sent as JSON
// and passes the check of its field after that, too.
func FuzzParseInput(f *testing.F) {
	kinds := []string{"TEXT", "NUM", "SLIDER", "BOOLEAN", "WIDTH_HEIGHT", "MULTI_SELECT", "SELECT", "SEED", "ASPECT_RATIO", "COLOR"}
	for i := range kinds {
		for _, text := range []string{"", "1", "1.5", "1e400", `"a"`, "{}", "true", "16x16", "16x", "a,b", "-0", " 1", "NaN", "9223372036854775808", "16:9", "#ff0000"} {
			f.Add(i, text)
		}
	}
	f.Fuzz(func(t *testing.T, kind int, text string) {
		field := catalog.Field{Key: "key", Type: catalog.FieldType(kinds[uint(kind)%uint(len(kinds))])}
		value, err := parseInput(field, text)
		if err != nil {
			if err.Error() == "" {
				t.Errorf("%s %q is refused without a reason", field.Type, text)
			}
			return
		}
		sent, err := json.Marshal(value)
		if err != nil {
			t.Fatalf("%s %q = %#v: %v", field.Type, text, value, err)
		}
		d := json.NewDecoder(strings.NewReader(string(sent)))
		d.UseNumber()
		var arrived any
		if err := d.Decode(&arrived); err != nil {
			t.Fatal(err)
		}
		if problem := field.CheckValue(plainNumbers(arrived)); text != "" && problem != "" {
			t.Errorf("%s %q passes as %#v, and as %s it does not: %s", field.Type, text, value, sent, problem)
		}
	})
}

// FuzzSplitWords proves that words which are quoted as a shell quotes them are
// split into the same words.
func FuzzSplitWords(f *testing.F) {
	f.Add("run fox prompt='a fox' x", "a", "b c")
	f.Add(`a\ b "c 'd'" 'e`, "'", `\`)
	f.Fuzz(func(t *testing.T, line, one, two string) {
		words := splitWords(line)
		if len(words) == 0 || len(words) > len(line)+1 {
			t.Fatalf("%q = %q", line, words)
		}
		one = strings.ToValidUTF8(one, "") // the words of a command line are text
		two = strings.ToValidUTF8(two, "")
		if one == "" {
			return
		}
		quote := func(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
		got := splitWords(quote(one) + " \t" + quote(two))
		if len(got) != 2 || got[0] != one || got[1] != two {
			t.Errorf("%q and %q = %q", one, two, got)
		}
	})
}

// FuzzParseFlags proves that places to forward to are addresses of HTTP, and
// that days are times that can be written and read again.
func FuzzParseFlags(f *testing.F) {
	for _, text := range []string{"", "3000", "0", "65536", "http", "http://localhost:3000/hook", "https://example.com", "ftp://x", "//x", "2026-11-01", "2026-11-01T12:00:00Z", "2026-13-01", "0000-01-01"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if forward, err := parseForward(text); err == nil && forward != "" {
			u, err := url.Parse(forward)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				t.Errorf("%q forwards to %q", text, forward)
			}
		}
		if day, err := parseDay("--since", text); err == nil && text != "" {
			again, err := parseDay("--since", day.Format(time.RFC3339))
			if err != nil || !again.Equal(day.Truncate(time.Second)) {
				t.Errorf("%q = %v, which is read as %v, %v", text, day, again, err)
			}
		}
	})
}
