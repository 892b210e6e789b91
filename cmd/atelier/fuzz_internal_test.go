package main

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"atelier/client"
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

// FuzzFlowFile proves that a flow which is printed as a file is read as the same
// flow, and that any other file is read as a flow that can be sent, or has
// problems with a place.
func FuzzFlowFile(f *testing.F) {
	for _, text := range []string{"", "yes", "a: b #c", " x ", "one\ntwo\n", "\ttab", "\ttwo\nlines", "0x1F", "2026-11-18", "<<", "null", "~", "\u0085\u2028", "🎨", "- a", "1e3", "'", `"\`} {
		f.Add(text, text, 1.5, []byte("name: "+text+"\nsteps: [{id: a}]\n"))
	}
	f.Add("a", "b", 1e21, []byte("{\n\t\"name\": \"\\ud83c\\udfa8\", \"steps\": [{\"id\": \"a\"}]}"))
	f.Add("a", "b", -9007199254740993.0, []byte("name: &a x\nsteps: [*a, {<<: *a}]\nname: y\n"))
	f.Fuzz(func(t *testing.T, key, text string, number float64, file []byte) {
		step := map[string]any{"id": text, "inputs": map[string]any{key: text, "number": number, "list": []any{text, nil, true, map[string]any{key: text}}}}
		draft := client.FlowDraft{Name: text, Description: &key, Steps: []map[string]any{step}, Results: []string{text}}
		want, err := json.Marshal(draft)
		if err != nil {
			t.Skip("JSON has no such number")
		}
		if err := json.Unmarshal(want, &draft); err != nil { // as the service sends it: valid UTF-8
			t.Fatal(err)
		}
		var printed strings.Builder
		if err := printFlowFile(&printed, "comment", draft); err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		again := parseFlowFile("flow", []byte(printed.String()))
		got, err := json.Marshal(again.draft)
		if err != nil || len(again.problems) > 0 || !sameJSON(t, got, want) {
			t.Errorf("%s\nis printed as\n%s\nand read as\n%s %v %v", want, printed.String(), got, again.problems, err)
		}

		read := parseFlowFile("flow", file)
		if _, err := json.Marshal(read.draft); err != nil {
			t.Errorf("%q cannot be sent: %v", file, err)
		}
		for _, problem := range read.problems {
			if problem.Line < 1 || problem.Column < 1 || problem.Message == "" {
				t.Errorf("%q has the problem %+v", file, problem)
			}
		}
	})
}

// sameJSON reports whether two texts have the same values; 2.0 is 2.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var one, two any
	for text, to := range map[*[]byte]*any{&a: &one, &b: &two} {
		if err := json.Unmarshal(*text, to); err != nil {
			t.Fatal(err)
		}
	}
	return reflect.DeepEqual(one, two)
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
