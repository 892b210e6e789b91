package e2e

import (
	"bytes"
	"fmt"
	"image/jpeg"
	"image/png"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"atelier/client"
	"atelier/internal/testkit/browser"
)

// TestStudioPictures takes the pictures of the documentation, in an installation
// with results, a board and a company. "make pictures" runs it; otherwise it is
// skipped.
func TestStudioPictures(t *testing.T) {
	folder := os.Getenv("ATELIER_DOC_PICTURES")
	if folder == "" {
		t.Skip("make pictures takes the pictures of the documentation")
	}
	s := newSite(t)
	s.env = append(s.env, "ATELIER_OPERATORS=artist@example.com", "ATELIER_LIMITS_ACTIVE_RUNS=100")
	e := newEasel(t, s)
	e.fillLibrary()
	board := e.fillBoard()
	flow := e.fillFlow()
	team := e.fillCompany()

	b := browser.Open(t)
	b.Size(1280, 860)
	b.Goto(e.node.url + "/signin")
	enter(b, "artist@example.com")
	b.See("navigation", "Main")
	for _, page := range []struct {
		name, path string
		dark       bool
		width      int
	}{
		{"create", "/", false, 1280},
		{"create-dark", "/", true, 1280},
		{"create-phone", "/", false, 390},
		{"create-wide", "/", false, 2560},
		{"library", "/library", false, 1280},
		{"library-phone", "/library", true, 390},
		{"board", "/boards/" + board, false, 1280},
		{"board-dark", "/boards/" + board, true, 1280},
		{"flow", "/flows/" + flow, false, 1280},
		{"you", "/you", false, 1280},
		{"people", "/people?team=" + team, false, 1280},
		{"reports", "/reports?team=" + team, false, 1280},
		{"operator", "/operator", false, 1280},
	} {
		height := 860
		if page.width == 2560 {
			height = 1300
		}
		b.Size(page.width, height)
		b.Dark(page.dark)
		b.Goto(e.node.url + page.path)
		b.See("heading", "…")
		b.Until(`document.querySelectorAll("[aria-busy=true]").length === 0 && 
			[...document.images].filter(i => i.checkVisibility() && i.getBoundingClientRect().top < innerHeight).every(i => i.complete)`)
		b.Eval(`new Promise(done => setTimeout(done, 1200))`) // pictures fade in
		writeJPEG(t, filepath.Join(folder, page.name+".jpg"), b.View())
	}
	wantNoComplaints(t, b)
}

// fillLibrary makes the results that the pictures show.
func (e *easel) fillLibrary() {
	e.t.Helper()
	for seed, prompt := range []string{
		"sailing boat at sunset", "polar bear in the snow", "blue whale", "red balloon in the sky", "cactus in the desert",
		"snail in the grass", "rocket at night", "camel in the desert", "mushroom in the forest", "octopus in the sea", "penguin in the snow",
		"sunflower", "robot", "teapot", "palm tree at sunset", "lighthouse at sunset",
	} {
		e.draw("Sketch", 1, map[string]any{"prompt": prompt, "seed": seed + 3})
	}
	e.draw("Sketch", 4, map[string]any{"prompt": "owl at night", "seed": 400})
	e.draw("Sketch", 4, map[string]any{"prompt": "fox in the forest", "seed": 21})
}

// fillBoard makes a board with results and texts, and returns its id.
func (e *easel) fillBoard() string {
	e.t.Helper()
	n := e.node
	board := n.call("POST", "/api/v2/boards", `{"name":"Night animals"}`).want(e.t, 201)["id"].(string)
	var nodes bytes.Buffer
	add := func(format string, args ...any) {
		if nodes.Len() > 0 {
			nodes.WriteString(",")
		}
		fmt.Fprintf(&nodes, format, args...)
	}
	y := 20
	for _, section := range []struct{ title, prompt string }{{"Owls", "owl at night"}, {"Foxes", "fox in the forest"}} {
		add(`{"kind":"TEXT","text":"# %s","x":40,"y":%d,"width":1120,"height":350}`, section.title, y)
		items := n.json("/api/v2/library?limit=4&q=" + url.QueryEscape(section.prompt))["data"].([]any)
		if len(items) != 4 {
			e.t.Fatalf("found %d pictures with %q", len(items), section.prompt)
		}
		for i, item := range items {
			id := item.(map[string]any)["id"].(string)
			add(`{"kind":"LIBRARY_REF","ref":%q,"x":%d,"y":%d,"width":250,"height":250}`, id, 70+i*270, y+70)
		}
		y += 390
	}
	add(`{"kind":"TEXT","text":"The second one is the direction: large eyes, soft light.","x":1200,"y":110,"width":230,"height":110}`)
	n.call("PATCH", "/api/v2/boards/"+board+"/nodes", `{"create":[`+nodes.String()+`]}`).want(e.t, 200)
	return board
}

// fillFlow saves a flow, runs it once, and returns its id.
func (e *easel) fillFlow() string {
	e.t.Helper()
	const name = "Animal poster"
	flow := e.node.call("POST", "/api/v2/flows", `{"name":"`+name+`","description":"Draws an animal three times and makes a sheet of large pictures.",
		"fields":[{"key":"prompt","type":"PROMPT","label":"Prompt","required":true,"max_length":300},
			{"key":"title","type":"TEXT","label":"Title","max_length":80}],
		"steps":[{"id":"draw","tool":"sketch","num_results":3,"inputs":{"prompt":{"field":"prompt"}}},
			{"id":"large","tool":"upscale-art","for_each":{"step":"draw","result":"all"},"max":4,"inputs":{"picture":{"item":true}}},
			{"id":"sheet","tool":"contact-sheet","inputs":{"pictures":{"step":"large","result":"all"},"title":{"field":"title"},"page":"wide"}}]}`).want(e.t, 201)
	id := flow["id"].(string)
	var err error
	if e.tools[name], err = e.client.Tools.Get(e.t.Context(), id); err != nil {
		e.t.Fatal(err)
	}
	e.draw(name, 1, map[string]any{"prompt": "owl at night", "title": "Owls"})
	return id
}

// fillCompany makes a company with two teams, their runs and a budget, and
// returns the id of the first team.
func (e *easel) fillCompany() string {
	e.t.Helper()
	company := e.do("admin", "company", "create", "--name", "Fox & Owl", "--plan", "ENTERPRISE")["id"].(string)
	e.do("admin", "company", "add", "--company", company, "--email", "artist@example.com", "--role", "admin")
	var teams []string
	for _, name := range []string{"Look development", "Motion"} {
		team := e.do("admin", "team", "create", "--company", company, "--name", name)["id"].(string)
		e.do("admin", "team", "add", "--team", team, "--email", "artist@example.com")
		e.grant("--team", team, 200)
		teams = append(teams, team)
	}
	for _, name := range []string{"bert", "carla"} {
		email := name + "@example.com"
		e.do("admin", "person", "create", "--email", email, "--password", password, "--verified")
		e.do("admin", "company", "add", "--company", company, "--email", email)
		e.do("admin", "team", "add", "--team", teams[0], "--email", email)
	}
	e.do("admin", "budget", "set", "--team", teams[0], "--tokens", "60")

	token := e.do("admin", "token", "create", "--email", "artist@example.com", "--name", "pictures", "--company", company)["token"].(string)
	for seed, r := range []struct {
		team, tool string
		results    int64
	}{
		{teams[0], "sketch", 4}, {teams[0], "gradient", 3}, {teams[0], "sketch", 2}, {teams[0], "pattern", 4},
		{teams[1], "gradient", 2}, {teams[1], "sketch", 1}, {teams[1], "pattern", 2},
	} {
		c, err := client.New(client.Options{URL: e.node.url, Token: token, TeamID: r.team})
		if err != nil {
			e.t.Fatal(err)
		}
		inputs := map[string]any{"seed": seed + 1}
		if r.tool == "sketch" {
			inputs["prompt"] = "fox in the forest"
		}
		run, err := c.Runs.Create(e.t.Context(), client.RunRequest{Tool: r.tool, Inputs: inputs, Results: r.results})
		if err == nil {
			run, err = run.Wait(e.t.Context(), client.Watch{})
		}
		if err == nil {
			err = run.Err()
		}
		if err != nil {
			e.t.Fatalf("run %s: %v", r.tool, err)
		}
	}
	return teams[0]
}

// writeJPEG stores a picture of a window.
func writeJPEG(t *testing.T, path string, view []byte) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(view))
	if err != nil {
		t.Fatal(err)
	}
	var encoded bytes.Buffer
	if err := jpeg.Encode(&encoded, picture, &jpeg.Options{Quality: 88}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, encoded.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
