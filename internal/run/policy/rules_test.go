package policy_test

import (
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"atelier/internal/run/policy"
)

// parse reads rules that are right.
func parse(t testing.TB, lines ...string) *policy.Rules {
	t.Helper()
	r, err := policy.Parse(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// prompt is a request with one text.
func prompt(s string) []policy.Text { return []policy.Text{{Path: "inputs.prompt", Value: s}} }

func refuses(r *policy.Rules, s string) bool {
	_, refused := r.FindViolation(prompt(s))
	return refused
}

// numberedLine matches the number of a line in an error.
var numberedLine = regexp.MustCompile(`line [0-9]+: `)

func TestParse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ab ", 333) + "a" // 1000 bytes
	for name, c := range map[string]struct {
		file string
		want []string // what the error names; none: no error
	}{
		"nothing":                       {"", nil},
		"blank lines and comments":      {"\n  \n# one\n\t# /two\n", nil},
		"phrases":                       {"pipe bomb\nПривет мир\n儿童\ndon't\nwell-known\nmp5", nil},
		"expressions":                   {"/a+b/\n/#\\d/", nil},
		"the same name in two":          {"/(?P<n>a)b/\n/(?P<n>c)d/", nil},
		"other line ends and a mark":    {"\ufeff# one\r\npipe bomb\r\n", nil},
		"as long as it may be":          {long, nil},
		"one byte longer":               {long + "c", []string{"line 1: the line is longer"}},
		"not UTF-8":                     {"a\xff", []string{"line 1: the line is not valid UTF-8"}},
		"marks in a phrase":             {"$ex", []string{"line 1: a phrase may contain only words"}},
		"a comment behind a phrase":     {"bomb # why", []string{"line 1: a phrase may contain only words"}},
		"no words":                      {"-", []string{"line 1: the phrase contains no words"}},
		"nothing to be seen":            {"\u200b\u0301", []string{"line 1: the phrase contains no words"}},
		"half an expression":            {"/a", []string{"line 1: a regular expression"}},
		"a slash":                       {"/", []string{"line 1: a regular expression"}},
		"two slashes":                   {"//", []string{"line 1: a regular expression"}},
		"a broken expression":           {"/a(/", []string{"line 1: "}},
		"what RE2 does not know":        {`/(a)\1/`, []string{"line 1: "}},
		"too many repeats":              {"/(a{1000}){1000}/", []string{"line 1: "}},
		"it matches everything":         {"/a*/", []string{"line 1: the expression matches"}},
		"it matches what has no letter": {"/\u0301/", []string{"line 1: the expression matches"}},
		"every bad line":                {"ok\n/(/\n\n$\n# fine\n/)/", []string{"line 2: ", "line 4: ", "line 6: "}},
		"the longest file":              {strings.Repeat("#\n", 1<<19), nil},
		"one byte more":                 {strings.Repeat("#\n", 1<<19) + "#", []string{"larger than 1048576 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := policy.Parse(strings.NewReader(c.file))
			if (err == nil) != (len(c.want) == 0) || (r == nil) != (err != nil) {
				t.Fatalf("parse = %v, %v, want %q", r, err, c.want)
			}
			if err == nil {
				return
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("parse = %v, want %q named", err, want)
				}
			}
			if n := len(numberedLine.FindAllString(err.Error(), -1)); strings.HasPrefix(c.want[0], "line") && n != len(c.want) {
				t.Errorf("parse = %v, want %d lines", err, len(c.want))
			}
		})
	}
	away := errors.New("away")
	if _, err := policy.Parse(io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(away))); !errors.Is(err, away) {
		t.Errorf("parse = %v, want the reader's error", err)
	}
}

func TestNoRules(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*policy.Rules{"nil": nil, "none": {}, "an empty file": parse(t)} {
		for _, texts := range [][]policy.Text{nil, {}, prompt(""), prompt("pipe bomb")} {
			if path, refused := r.FindViolation(texts); refused || path != "" {
				t.Errorf("%s: %v = %q, %v", name, texts, path, refused)
			}
		}
	}
}

// TestWords holds phrases to whole words and expressions to what they say.
func TestWords(t *testing.T) {
	t.Parallel()
	r := parse(t, "bomb", "pipe dream", "mp5", "fail", "бомба", "ηρωίνη", "儿童 色情", "ระเบิด", "Straße", `/\bcode \d{3}\b/`, "/^start/", `/colou?r [A-F]\S/`, "/Ñandú/", "/привет/", "/(gun)(?P<n>s)/")
	for text, want := range map[string]bool{
		"bomb": true, "a bomb.": true, "(bomb)": true, "bombs": false, "bombastic": false, "abomb": false, "succubomb": false, "bo mb": false,
		"pipe dream": true, "pipe  \n dream": true, "pipe-dream": true, "dream pipe": false, "pipe a dream": false, "pipedream": false, "pipe dreams": false,
		"mp5": true, "mps": false, "mp 5": false, "m p 5": true,
		"fail": true, "fall": false, "fa1l": true, "fa1l1": false, "faii": false, "fai1": true,
		"бомба": true, "БОМБА": true, "бомбa": true, "bombа": false, "бомбы": false,
		"Ηρωίνη": true, "ΗΡΩΙΝΗ": true, "ηρωινης": false,
		"看儿童色情图": true, "儿童，色情": true, "儿童": false, "色情儿童": false,
		"วางระเบิดที่นี่": true, "ระ": false,
		"strasse": true, "STRASSE": true, "straße": true, "strase": false,
		"code 123": true, "code  123": true, "CODE 123": true, "code 1234": false, "code o23": false, "ｃｏｄｅ １２３": true,
		"start here": true, "a start": false,
		"Color bx": true, "colour B7": true, "colour g7": false, "color a ": false,
		"nandu": true, "ÑANDÚ": true, "n̈andu": true, "Привет": true, "ПРИВЕТ": true, "guns": true, "gun": false,
		"911": false, "8 0 m 8": true, "80m8": true, "8048": false, "b 0 m b e r": true,
	} {
		if got := refuses(r, text); got != want {
			t.Errorf("%q refused = %v, want %v", text, got, want)
		}
	}
}

func TestSpreadOverTexts(t *testing.T) {
	t.Parallel()
	r := parse(t, "pipe bomb", "napalm", `/code \d{3}\b/`, "/^only$/")
	texts := func(values ...string) (all []policy.Text) {
		for i, v := range values {
			all = append(all, policy.Text{Path: string(rune('a' + i)), Value: v})
		}
		return all
	}
	for _, c := range []struct {
		texts []policy.Text
		path  string // of the refusal; empty: none
	}{
		{texts("x", "a pipe bomb", "y"), "b"},
		{texts("x", "y", "pipe bomb"), "c"},
		{texts("a pipe", "bomb please"), "b"},
		{texts("a pipe", "", "  ", "bomb"), "d"},
		{texts("na", "palm"), "b"},
		{texts("pipe bo", "mb"), "b"},
		{texts("n", "a", "p", "a", "l", "m"), "f"},
		{texts("a pi", "pe bo", "mb now"), "c"},
		{texts("code", "123"), "b"},
		{texts("co", "de 12", "3"), "c"},
		{texts("x", "only"), "b"},
		{texts("pipe", "dream", "bomb"), ""},
		{texts("bomb", "pipe"), ""},
		{texts("onl", "x"), ""},
		{texts("", ""), ""},
	} {
		if path, refused := r.FindViolation(c.texts); path != c.path || refused != (c.path != "") {
			t.Errorf("%v = %q, %v, want %q", c.texts, path, refused, c.path)
		}
	}
}

func TestTooLongIsRefused(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	for _, r := range []*policy.Rules{nil, parse(t, "pipe bomb")} {
		for length, want := range map[int]string{most - 1: "", most: "", most + 1: "b"} {
			texts := []policy.Text{{"a", strings.Repeat("x", most-10)}, {"b", strings.Repeat("y", length-most+10)}, {"c", ""}}
			if path, refused := r.FindViolation(texts); path != want || refused != (want != "") {
				t.Errorf("%d bytes = %q, %v, want %q", length, path, refused, want)
			}
		}
	}
	r := parse(t, "pipe bomb")
	if !refuses(r, strings.Repeat("x ", (most-10)/2)+"pipe bomb") {
		t.Error("the end of a long text is not looked at")
	}
}

// TestTimeGrowsWithLength compares a text with one sixteen times as long: in
// square time that takes 256 times as long.
func TestTimeGrowsWithLength(t *testing.T) { // alone, since it measures
	shipped, err := os.ReadFile("default.rules")
	if err != nil {
		t.Fatal(err)
	}
	r := parse(t, string(shipped), "pipe bomb", "a a a a a a a a a a b", "aaaaaaaaaaaaaaaaaaaaab", "illlilllz", "/a+b+c+$/", `/\b(x ){0,20}z\b/`)
	for _, unit := range []string{"a ", "a", "1", "1 ", "pipe ", "x ", "child ", "a\u0301", "\u0301", "ﷺ", "b.o.", "@", "儿", " ", "how to make "} {
		measure := func(length int) time.Duration {
			text := strings.Repeat(unit, length/len(unit))
			begin := time.Now()
			if refuses(r, text) {
				t.Fatalf("%q is refused", unit)
			}
			return time.Since(begin)
		}
		short := max(measure(1<<10), measure(1<<10), time.Millisecond)
		if long := measure(16 << 10); long > 100*short {
			t.Errorf("%q: %v, and %v for sixteen times as much", unit, short, long)
		}
	}
}

func FuzzRules(f *testing.F) {
	f.Add("pipe bomb\n/a+b/", "a p1pe b.o.m.b", "inputs")
	f.Add("# none\n儿童\n/\\bx\\b/", "儿 童", "\u0301\xff")
	f.Add("/[^a]/\n/(?i)É/", "É", "")
	f.Fuzz(func(t *testing.T, file, one, two string) {
		r, err := policy.Parse(strings.NewReader(file))
		if err != nil {
			return
		}
		texts := []policy.Text{{"one", one}, {"two", two}}
		path, refused := r.FindViolation(texts)
		if refused != (path != "") || refused && path != "one" && path != "two" {
			t.Errorf("match = %q, %v", path, refused)
		}
		for _, alone := range texts { // what is refused alone is refused in company
			if _, also := r.FindViolation([]policy.Text{alone}); also && !refused {
				t.Errorf("%q is refused alone and not with the other", alone)
			}
		}
		for line := range strings.Lines(file) { // a phrase matches itself
			line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
			if line == "" || line[0] == '#' || line[0] == '/' || strings.Contains(line, "\ufeff") {
				continue
			}
			if !refuses(r, line) {
				t.Errorf("%q does not match itself", line)
			}
		}
	})
}
