package library_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/file/library"
)

func TestSearch(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		of := func(prompt string) string {
			return w.make(made{account: anna, person: anna, prompt: prompt, files: [][]byte{picture(3, 3)}}).ids[0]
		}
		fox := of("A red Fox in the SNOW")
		hound := of("a hound, 100% wool, file_name")
		uml := of(`Ärger über ÉCLAIRS \o/`)
		none := of("")
		w.make(made{account: bert, person: bert, prompt: "a red fox", files: [][]byte{picture(3, 3)}})
		for search, want := range map[string][]string{
			"":                    {fox, hound, uml, none},
			"  \t ":               {fox, hound, uml, none},
			"fox":                 {fox},
			"FOX":                 {fox},
			"snow red":            {fox},
			"now":                 {fox},
			"red hound":           nil,
			"a":                   {fox, hound, uml},
			"ärger":               {uml},
			"ÄRGER éclairs":       {uml},
			"100%":                {hound},
			"0%w":                 nil,
			"1%l":                 nil,
			"file_name":           {hound},
			"filesname":           nil,
			"e_n":                 {hound},
			"l__e":                nil,
			`\o/`:                 {uml},
			`\`:                   {uml},
			"'":                   nil,
			"zeppelin":            nil,
			"red fox in the snow": {fox},
		} {
			if got := w.list(viewerOf(anna), library.Filter{Search: search}); !slices.Equal(got, sorted(slices.Clone(want)...)) {
				w.Errorf("%q finds %v, want %v", search, got, want)
			}
		}
		for _, search := range []string{strings.Repeat("x", 201), strings.Repeat("x ", 11), "a\x00b", "\xff"} {
			_, err := w.lib.ListItems(w.Context(), viewerOf(anna), library.Filter{Search: search}, nil, 10)
			if e, ok := err.(*fault.Error); !ok || e.Code != fault.Invalid || e.Fields[0].Path != "q" {
				w.Errorf("%q = %v, want a problem with q", search, err)
			}
		}
		if got := w.list(viewerOf(anna), library.Filter{Search: strings.Repeat("é", 200)}); len(got) != 0 {
			w.Errorf("200 characters find %v", got)
		}
	})
}

// Results of a release without a text for searching are found after the
// background job.
func TestOldResultsBecomeSearchable(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		r := w.make(made{account: anna, person: anna, prompt: "ÄPFEL", files: [][]byte{picture(3, 3), picture(3, 3)}})
		erased := w.make(made{account: anna, person: anna, files: [][]byte{picture(3, 3)}})
		w.Exec(`UPDATE result SET search_text = NULL`)
		if got := w.list(viewerOf(anna), library.Filter{Search: "äpfel"}); len(got) != 0 {
			w.Errorf("before the job = %v", got)
		}
		w.OK(w.lib.FillSearchTexts(w.Context()))
		w.OK(w.lib.FillSearchTexts(w.Context()))
		if got := w.list(viewerOf(anna), library.Filter{Search: "äpfel"}); !slices.Equal(got, sorted(r.ids...)) {
			w.Errorf("after the job = %v, want %v", got, r.ids)
		}
		if got := w.list(viewerOf(anna), library.Filter{}); len(got) != 3 || !slices.Contains(got, erased.ids[0]) {
			w.Errorf("all = %v", got)
		}
	})
}

func TestTypesAndOrder(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		var made3 []string
		for range 3 {
			made3 = append(made3, w.make(made{account: anna, person: anna, files: [][]byte{picture(3, 3)}}).ids[0])
			w.Pass(time.Second)
		}
		text := w.make(made{account: anna, person: anna, files: [][]byte{[]byte("once upon a time")}}).ids[0]
		for kind, want := range map[string][]string{"IMG": made3, "VID": nil, "TEXT": nil, "": made3} {
			if got := w.list(viewerOf(anna), library.Filter{Type: kind}); !slices.Equal(got, sorted(slices.Clone(want)...)) || slices.Contains(got, text) {
				w.Errorf("type %q = %v, want %v", kind, got, want)
			}
		}
		for isOldest, want := range map[bool][]string{true: made3, false: {made3[2], made3[1], made3[0]}} {
			var got []string
			var after *library.Cursor
			for {
				page, err := w.lib.ListItems(w.Context(), viewerOf(anna), library.Filter{OldestFirst: isOldest}, after, 1)
				w.OK(err)
				if len(page) == 0 {
					break
				}
				got = append(got, page[0].ID)
				after = &library.Cursor{Created: page[0].Created, ID: page[0].ResultID}
			}
			if !slices.Equal(got, want) {
				w.Errorf("oldest first %v = %v, want %v", isOldest, got, want)
			}
		}
		w.upload(anna, anna, "a")
		for kind, want := range map[string]int{"IMG": 1, "VID": 0, "": 1} {
			if all, err := w.lib.ListUploads(w.Context(), viewerOf(anna), anna, kind, nil, 10); err != nil || len(all) != want {
				w.Errorf("uploads of type %q = %v, %v, want %d", kind, all, err, want)
			}
		}
	})
}
