package library_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/file/library"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

func (w fixture) list(v principal.Principal, f library.Filter) (ids []string) {
	w.Helper()
	all, err := w.lib.ListItems(w.Context(), v, f, nil, 1000)
	w.OK(err)
	for _, i := range all {
		ids = append(ids, i.ID)
	}
	slices.Sort(ids)
	return ids
}

func sorted(ids ...string) []string { slices.Sort(ids); return ids }

func TestItems(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		team, tool := w.team(anna, bert), w.tool()
		b := picture(64, 36)
		r := w.make(made{account: team, person: anna, tool: tool, files: [][]byte{b}, prompt: "a fox", inputs: `{"prompt":"a fox"}`})
		a := r.assets[0]
		want := library.Item{
			ID: r.library + ":" + r.results[0], ResultID: r.results[0], AccountID: team, RequestID: r.run, PersonID: anna, ToolID: tool, TeamID: team,
			Created: w.Now(), Prompt: "a fox", Type: "IMG", MimeType: "image/png", Width: 64, Height: 36, Size: a.Size, SHA256: a.SHA256,
			Blurhash: a.Blurhash, Names: library.ResultNames(tool, r.results[0], library.Keys{Blob: a.Blob, Thumb: a.Thumb}), Note: "Not quite: a fox",
		}
		if a.Blurhash == "" || a.SHA256 != sum(b) {
			w.Errorf("asset = %+v", a)
		}
		all, err := w.lib.ListItems(w.Context(), teamViewer(bert, team), library.Filter{}, nil, 10)
		if err != nil || len(all) != 1 || all[0] != want {
			w.Errorf("list = %+v, %v, want %+v", all, err, want)
		}
		want.Inputs = `{"prompt":"a fox"}`
		if got, err := w.lib.GetItem(w.Context(), teamViewer(bert, team), want.ID); err != nil || got != want {
			w.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		mine := w.make(made{account: anna, person: anna, files: [][]byte{picture(5, 5)}})
		got, err := w.lib.GetItem(w.Context(), viewerOf(anna), mine.ids[0])
		if err != nil || got.TeamID != "" || got.AccountID != anna {
			w.Errorf("own = %+v, %v", got, err)
		}
	})
}

func TestTextsAreReadAndNotListed(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		r := w.make(made{account: anna, person: anna, files: [][]byte{[]byte("once upon a time"), picture(3, 3)}})
		if got := w.list(viewerOf(anna), library.Filter{}); !slices.Equal(got, r.ids[1:]) {
			w.Errorf("list = %v, want the picture", got)
		}
		if got, err := w.lib.GetItem(w.Context(), viewerOf(anna), r.ids[0]); err != nil || got.Type != "TEXT" || got.Names.Thumb != "" {
			w.Errorf("text = %+v, %v", got, err)
		}
	})
}

// Three tenants with tagged data: whatever one of them asks, nothing of the
// others is in the answer.
func TestTenantsAreApart(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		people := []string{w.person(), w.person(), w.person()}
		shared := w.tool()
		tag := func(i int) string { return fmt.Sprintf("TENANT-%c", 'A'+i) }
		var teams []string
		ids, uploads := make([][]string, 3), make([][]string, 3)
		for i, p := range people {
			teams = append(teams, w.team(p))
			for _, account := range []string{p, teams[i]} {
				r := w.make(made{account: account, person: p, tool: shared, files: [][]byte{picture(3, 3), picture(4, 4)}, prompt: tag(i), inputs: `{"prompt":"` + tag(i) + `"}`})
				ids[i] = append(ids[i], r.ids...)
				uploads[i] = append(uploads[i], w.upload(account, p, tag(i)).ID)
			}
		}
		yes, no := true, false
		for i, p := range people {
			v := teamViewer(p, p, teams[i])
			w.OK(w.lib.SetFavorite(w.Context(), v, ids[i][0], true))
			for _, f := range []library.Filter{{}, {ToolIDs: []string{shared}}, {AspectRatio: "1:1"}, {Resolution: "1K"}, {Favorited: &yes}, {Favorited: &no}, {From: w.Now()}, {Until: w.Now().Add(time.Second)}} {
				all, err := w.lib.ListItems(w.Context(), v, f, nil, 1000)
				w.OK(err)
				text := fmt.Sprintf("%+v", all)
				for other := range people {
					if other != i && (strings.Contains(text, tag(other)) || strings.Contains(text, people[other]) || strings.Contains(text, teams[other])) {
						w.Errorf("%s sees %s with %+v", tag(i), tag(other), f)
					}
				}
				if len(all) == 0 {
					w.Errorf("%s sees nothing with %+v", tag(i), f)
				}
			}
			for _, account := range []string{p, teams[i]} {
				all, err := w.lib.ListUploads(w.Context(), v, account, "", nil, 1000)
				if err != nil || len(all) != 1 || all[0].Name != tag(i) {
					w.Errorf("uploads of %s = %+v, %v", tag(i), all, err)
				}
			}
			for other := range people {
				for _, id := range ids[other] {
					got, err := w.lib.GetItem(w.Context(), v, id)
					if other == i {
						w.OK(err)
						continue
					}
					w.refused(err, noItem)
					if got != (library.Item{}) {
						w.Errorf("a refusal gives %+v", got)
					}
					v.Role.Permissions = []company.Permission{company.ManageTeam}
					w.refused(w.lib.DeleteItem(w.Context(), v, id), noItem)
					w.refused(w.lib.SetFavorite(w.Context(), v, id, true), noItem)
					w.refused(w.lib.SetFavorite(w.Context(), v, id, false), noItem)
				}
				for _, id := range uploads[other] {
					if other != i {
						for _, account := range []string{p, teams[i]} {
							_, err := w.lib.GetUpload(w.Context(), v, account, id)
							w.refused(err, noUpload)
							w.refused(w.lib.DeleteUpload(w.Context(), v, account, id), noUpload)
						}
					}
				}
			}
		}
		if got := w.list(teamViewer(people[0]), library.Filter{}); len(got) != 0 {
			w.Errorf("with no account there is %v", got)
		}
		if _, err := w.lib.GetItem(w.Context(), teamViewer(people[0]), ids[0][0]); !fault.Is(err, fault.NotFound) {
			w.Errorf("with no account: %v", err)
		}
		for i := range people {
			for _, id := range ids[i] {
				if _, err := w.lib.GetItem(w.Context(), teamViewer(people[i], people[i], teams[i]), id); err != nil {
					w.Errorf("after all that %s lost %s: %v", tag(i), id, err)
				}
			}
		}
	})
}

func TestPages(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		team, tool := w.team(anna), w.tool()
		b := picture(3, 3)
		want := map[string]bool{}
		for i := range 6 {
			if i%3 == 0 {
				w.Pass(time.Second)
			}
			for _, id := range w.make(made{account: []string{anna, team}[i%2], person: anna, tool: tool, files: [][]byte{b, b}}).ids {
				want[id] = true
			}
		}
		var after *library.Cursor
		var last library.Item
		for n := 0; ; n++ {
			page, err := w.lib.ListItems(w.Context(), teamViewer(anna, anna, team), library.Filter{}, after, 5)
			w.OK(err)
			if len(page) == 0 {
				if n != 3 {
					w.Errorf("%d pages, want 3", n)
				}
				break
			}
			for _, i := range page {
				if !want[i.ID] || !last.Created.IsZero() && i.Created.After(last.Created) {
					w.Errorf("%s came twice, or out of order", i.ID)
				}
				delete(want, i.ID)
				last = i
			}
			after = &library.Cursor{Created: last.Created, ID: last.ResultID}
			w.Pass(time.Second)
			w.make(made{account: anna, person: anna, tool: tool, files: [][]byte{b}}) // new ones do not shift the pages
		}
		if len(want) != 0 {
			w.Errorf("the pages lack %v", want)
		}
	})
}

func TestFilters(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna := w.person()
		fox, hound := w.tool(), w.tool()
		start := w.Now()
		wide := w.make(made{account: anna, person: anna, tool: fox, files: [][]byte{picture(16, 9)}}).ids[0]
		w.Pass(time.Minute)
		square := w.make(made{account: anna, person: anna, tool: hound, files: [][]byte{picture(3, 3)}}).ids[0]
		w.Exec(`UPDATE result SET resolution = '2K' WHERE tool_id = $1`, hound)
		w.Pass(time.Minute)
		odd := w.make(made{account: anna, person: anna, tool: hound, files: [][]byte{picture(3072, 2)}}).ids[0]
		w.OK(w.lib.SetFavorite(w.Context(), viewerOf(anna), square, true))
		yes, no := true, false
		for name, c := range map[string]struct {
			filter library.Filter
			want   []string
		}{
			"all":               {library.Filter{}, sorted(wide, square, odd)},
			"a tool":            {library.Filter{ToolIDs: []string{fox}}, []string{wide}},
			"tools":             {library.Filter{ToolIDs: []string{fox, hound, ids.New()}}, sorted(wide, square, odd)},
			"another tool":      {library.Filter{ToolIDs: []string{ids.New()}}, nil},
			"no tool":           {library.Filter{ToolIDs: []string{}}, nil},
			"no tool's id":      {library.Filter{ToolIDs: []string{"\x00"}}, nil},
			"wide":              {library.Filter{AspectRatio: "16:9"}, []string{wide}},
			"other shapes":      {library.Filter{AspectRatio: "OTHER"}, []string{odd}},
			"1K":                {library.Filter{Resolution: "1K"}, []string{wide}},
			"2K":                {library.Filter{Resolution: "2K"}, []string{square}},
			"4K+":               {library.Filter{Resolution: "4K+"}, []string{odd}},
			"favorites":         {library.Filter{Favorited: &yes}, []string{square}},
			"others":            {library.Filter{Favorited: &no}, sorted(wide, odd)},
			"from":              {library.Filter{From: start.Add(time.Minute)}, sorted(square, odd)},
			"from a bit later":  {library.Filter{From: start.Add(time.Minute + time.Microsecond)}, []string{odd}},
			"until":             {library.Filter{Until: start.Add(time.Minute)}, []string{wide}},
			"until a bit later": {library.Filter{Until: start.Add(time.Minute + time.Microsecond)}, sorted(wide, square)},
			"all at once":       {library.Filter{ToolIDs: []string{hound}, AspectRatio: "1:1", Resolution: "2K", Favorited: &yes, From: start, Until: w.Now()}, []string{square}},
		} {
			if got := w.list(viewerOf(anna), c.filter); !slices.Equal(got, c.want) {
				w.Errorf("%s = %v, want %v", name, got, c.want)
			}
		}
		for field, f := range map[string]library.Filter{"aspect_ratio": {AspectRatio: "5:4"}, "resolution": {Resolution: "8K\x00"}} {
			_, err := w.lib.ListItems(w.Context(), viewerOf(anna), f, nil, 10)
			if e, ok := err.(*fault.Error); !ok || e.Code != fault.Invalid || e.Fields[0].Path != field {
				w.Errorf("%+v = %v, want a problem with %s", f, err, field)
			}
		}
	})
}

// A mark is a person's own.
func TestFavorites(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		team := w.team(anna, bert)
		id := w.make(made{account: team, person: anna, files: [][]byte{picture(3, 3)}}).ids[0]
		for _, on := range []bool{true, true, false, false, true} {
			w.OK(w.lib.SetFavorite(w.Context(), teamViewer(anna, team), id, on))
			if got, err := w.lib.GetItem(w.Context(), teamViewer(anna, team), id); err != nil || got.Favorited != on {
				w.Errorf("hers = %v, %v, want %v", got.Favorited, err, on)
			}
			if got, err := w.lib.GetItem(w.Context(), teamViewer(bert, team), id); err != nil || got.Favorited {
				w.Errorf("his = %v, %v, want none", got.Favorited, err)
			}
		}
	})
}

func TestDelete(t *testing.T) {
	eachDatabase(t, func(w fixture) {
		anna, bert := w.person(), w.person()
		team := w.team(anna, bert)
		r := w.make(made{account: team, person: anna, files: [][]byte{picture(3, 3), picture(3, 3), picture(3, 3)}})
		w.refused(w.lib.DeleteItem(w.Context(), teamViewer(bert, team), r.ids[0]), permission)
		manager := teamViewer(bert, team)
		manager.Role.Permissions = []company.Permission{company.ManageTeam}
		w.OK(w.lib.DeleteItem(w.Context(), manager, r.ids[0]))
		w.OK(w.lib.SetFavorite(w.Context(), teamViewer(bert, team), r.ids[1], true))
		w.OK(w.lib.DeleteItem(w.Context(), teamViewer(anna, team), r.ids[1]))
		for _, id := range r.ids[:2] {
			w.refused(w.lib.DeleteItem(w.Context(), teamViewer(anna, team), id), noItem)
			_, err := w.lib.GetItem(w.Context(), teamViewer(anna, team), id)
			w.refused(err, noItem)
			w.refused(w.lib.SetFavorite(w.Context(), teamViewer(anna, team), id, true), noItem)
		}
		if got := w.list(teamViewer(anna, team), library.Filter{}); !slices.Equal(got, r.ids[2:]) {
			w.Errorf("list = %v, want %v", got, r.ids[2:])
		}
	})
}
