package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image/color"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"atelier/internal/testkit/browser"
	"atelier/test/program"
)

// The tools of the tests of Create. The runs of Painter say themselves what
// happens in them.
const (
	painterTool = `name: Painter
description: Paints what you say.
tags: [picture]
position: 1
price: {type: COST, tokens: 5}
num_results: {max: 4}
output: {type: IMG, mime_types: [image/png]}
engine: {name: script}
timeout: 10m
fields:
  - {key: prompt, type: PROMPT, label: Prompt, required: true, max_length: 300}
  - {key: seed, type: SEED, label: Seed, advanced: true}
  - {key: script, type: TEXT_AREA, label: Script, advanced: true, max_length: 5000}
`
	costlyTool = `name: Oil painting
description: Takes the best paint there is.
tags: [picture]
position: 2
price: {type: COST, tokens: 600}
num_results: {max: 4}
output: {type: IMG, mime_types: [image/png]}
engine: {name: script}
fields:
  - {key: prompt, type: PROMPT, label: Prompt, required: true}
`
	whistleTool = `name: Whistle
description: Whistles a tune.
tags: [sound]
position: 3
price: {type: FREE}
output: {type: AUDIO, mime_types: [audio/wav]}
engine: {name: script}
fields:
  - {key: prompt, type: PROMPT, label: Prompt, required: true}
`
	echoTool = `name: Echo
description: Gives back what it got.
position: 4
price: {type: COST, tokens: 1}
num_results: {max: 3}
output: {type: TEXT, mime_types: [text/plain]}
engine: {name: echo}
fields:
  - {key: heading, type: HEADER, label: Words}
  - {key: note, type: HTML, label: Note, html: "Read the <b>note</b>."}
  - {key: prompt, type: PROMPT, label: Prompt, required: true, max_length: 300}
  - {key: avoid, type: NEG_PROMPT, label: Avoid}
  - {key: title, type: TEXT, label: Title}
  - {key: story, type: TEXT_AREA, label: Story}
  - group: Numbers
    fields:
      - {key: strength, type: SLIDER, label: Strength, min: 0, max: 1, step: 0.05, default: 0.5}
      - {key: factor, type: UPSCALE_FACTOR_SLIDER, label: Factor, min: 1, max: 4, integer: true, default: 2}
      - {key: guidance, type: CFG, label: Guidance, min: 1, max: 20, default: 7}
      - {key: steps, type: STEPS, label: Steps, min: 1, max: 50, default: 20}
      - {key: number, type: NUM, label: Number, advanced: true}
      - {key: seed, type: SEED, label: Seed, advanced: true}
  - group: Choices
    fields:
      - {key: tidy, type: BOOLEAN, label: Tidy}
      - {key: style, type: SINGLE_SELECT, label: Style, options: [{text: Plain, value: plain}, {text: Wild, value: wild}], default: plain}
      - {key: mood, type: SINGLE_SELECT, label: Mood, show_as: radio, options: [{text: Calm, value: calm}, {text: Merry, value: merry}]}
      - {key: model, type: MODEL_SINGLE_SELECT, label: Model, show_as: image, options: [{text: Small model, value: small, image: good.png}, {text: Large model, value: large, image: good.png}]}
      - {key: colours, type: MULTI_SELECT, label: Colours, max_items: 2, options: [{text: Red, value: red}, {text: Green, value: green}, {text: Blue, value: blue}]}
      - {key: size, type: WIDTH_HEIGHT, label: Size, min: 64, max: 1024, sizes: [{text: Square, width: 512, height: 512}, {text: Tall, width: 512, height: 768}], default: {width: 512, height: 512}}
  - group: Files
    fields:
      - {key: picture, type: IMG, label: Picture, accept: [image/png]}
      - {key: pictures, type: IMGS, label: Pictures, max_items: 3}
      - {key: video, type: VIDEO, label: Video}
      - {key: sound, type: AUDIO, label: Sound}
      - {key: model3d, type: ASSET_3D, label: Object}
`
	tagsOfTools = `picture: {type: MEDIA, label: Pictures}
sound: {type: MEDIA, label: Sounds}
`
	kitsOfTools = `first-steps:
  label: First steps
  description: Two tools to begin with.
  default: painter
  tools: [{tool: painter}, {tool: whistle}]
`
)

// giveTools gives an installation the tools of the tests of Create, and returns
// the folder of their manifests.
func giveTools(t *testing.T, s *site) string {
	t.Helper()
	dir := t.TempDir()
	manifests := filepath.Join(dir, "tools")
	if err := os.Mkdir(manifests, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "echo.sh", "cat > out/1.txt\n")
	write(t, dir, "backends.yaml", fmt.Sprintf("echo: {engine: exec, command: [/bin/sh, %q]}\n", filepath.Join(dir, "echo.sh")))
	for name, text := range map[string]string{
		"painter.yaml": painterTool, "costly.yaml": costlyTool, "whistle.yaml": whistleTool, "echo.yaml": echoTool,
		"tags.yaml": tagsOfTools, "kits.yaml": kitsOfTools, "good.png": string(plainPicture(t, 40, 30, color.NRGBA{200, 30, 60, 255})),
	} {
		write(t, manifests, name, text)
	}
	s.env = append(s.env, "ATELIER_CATALOG_BUILTIN=false", "ATELIER_TOOLS="+manifests, "ATELIER_BACKENDS="+filepath.Join(dir, "backends.yaml"))
	return manifests
}

// says waits until the page shows a text.
func says(b *browser.Browser, text string) {
	quoted, _ := json.Marshal(text)
	b.Until(fmt.Sprintf(`document.body.innerText.includes(%s)`, quoted))
}

// saysNot waits until the page does not show a text.
func saysNot(b *browser.Browser, text string) {
	quoted, _ := json.Marshal(text)
	b.Until(fmt.Sprintf(`!document.body.innerText.includes(%s)`, quoted))
}

// holds waits until the input of a field has a value.
func holds(b *browser.Browser, field, value string) {
	quoted, _ := json.Marshal(value)
	b.Until(fmt.Sprintf(`document.querySelector("[data-field=%s]")?.value === %s`, field, quoted))
}

// unfold opens the fold of a form's advanced fields.
func unfold(b *browser.Browser) {
	b.Until(`(fold => fold && (fold.ariaExpanded === "true" || fold.click(), true))(document.querySelector("form button[aria-expanded]"))`)
	b.See("textbox", "Script")
}

// paint starts a run of Painter that does as the script says.
func paint(b *browser.Browser, prompt, script string) {
	b.TypeInto("textbox", "Prompt", prompt)
	unfold(b)
	b.TypeInto("textbox", "Script", script)
	b.ClickOn("button", "Create…")
	b.See("article", prompt)
}

// onePicture is a script that makes one picture.
const onePicture = `[{"output":{"kind":"png","width":64,"height":48}}]`

// TestStudioCreate goes through Create with the mouse: the tools, the price, runs
// in all of their states, what is done with results, and the code of a run.
func TestStudioCreate(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		giveTools(t, s)
		n := s.serve()
		b := openStudio(t, n)
		n.token = s.do("admin", "token", "create", "--email", "anna@example.com", "--name", "test")["token"].(string)

		pickTools(t, b)
		followPrice(t, b)
		followRuns(t, b)
		useResults(t, b)
		copyAsCode(t, s, n, b)
		refuseForBalance(t, b)
		wantNoComplaints(t, b)
		n.stop()
		s.check()
	})
}

// pickTools finds a tool by word, tag and collection.
func pickTools(t *testing.T, b *browser.Browser) {
	t.Helper()
	b.ClickOn("button", "Tool: Painter…")
	b.See("button", "Whistle…")
	b.TypeInto("searchbox", "Search tools", "tune")
	b.Until(`document.querySelectorAll("dialog[open] li").length === 1`)
	b.See("button", "Whistle…")

	b.TypeInto("searchbox", "Search tools", "nothing is called this")
	b.See("heading", "No tool matches")
	b.ClickOn("button", "Show all tools")
	b.Until(`document.querySelectorAll("dialog[open] li").length === 4`)
	wantAccessible(t, b, "the list of tools")
	keepLooks(t, b, "tools")

	b.ClickOn("button", "Sounds")
	b.Until(`document.querySelectorAll("dialog[open] li").length === 1`)
	b.ClickOn("button", "Sounds")
	b.ClickOn("tab", "First steps")
	says(b, "Two tools to begin with.")
	b.Until(`document.querySelectorAll("dialog[open] li").length === 2`)
	b.ClickOn("button", "Whistle…")
	b.See("button", "Tool: Whistle…")

	b.ClickOn("button", "Tool: Whistle…")
	b.ClickOn("button", "Painter…")
	b.See("button", "Tool: Painter…")
}

// followPrice changes the number of results and watches the price.
func followPrice(t *testing.T, b *browser.Browser) {
	t.Helper()
	b.TypeInto("textbox", "Prompt", "red kite")
	says(b, "995 left after it")
	b.ClickOn("button", "More")
	says(b, "10 tokens")
	says(b, "990 left after it")

	b.Reload()
	holds(b, "prompt", "red kite")
	says(b, "990 left after it")
	b.ClickOn("button", "Create…")
	b.See("button", "red kite, 2 of 2")
	b.Until(aPictureIsThere)
	says(b, "980 left after it")
}

// followRuns watches a run that works, one that waits, and one that fails.
func followRuns(t *testing.T, b *browser.Browser) {
	t.Helper()
	b.ClickOn("button", "Fewer")
	paint(b, "slow kite", `[{"preview":true},{"progress":0.42},{"hang":true}]`)
	b.See("progressbar", "Progress of slow kite")
	says(b, "running, 42 %")
	b.See("button", "Running 1")
	wantAccessible(t, b, "a run that works")
	keepLooks(t, b, "create-running")
	b.ClickOn("button", "Cancel")
	says(b, "Cancelled. It cost nothing.")

	paint(b, "patient kite", `[{"queued":3},{"hang":true}]`)
	says(b, "Third in the queue")
	b.ClickOn("button", "Running 1")
	b.Until(`document.querySelectorAll("article").length === 1`)
	b.ClickOn("button", "Cancel")
	b.See("heading", "Nothing is running")
	b.ClickOn("button", "Show all runs")

	paint(b, "torn kite", `[{"fail":{"code":"ENGINE_FAILED","message":"The model has no paint left."}}]`)
	says(b, "The model has no paint left.")
	says(b, "It cost nothing.")
	b.See("button", "Failed 1")
	wantAccessible(t, b, "a run that failed")
	keepLooks(t, b, "create-failed")
	b.TypeInto("textbox", "Prompt", "something else")
	b.ClickOn("button", "Edit and retry")
	holds(b, "prompt", "torn kite")
	paint(b, "mended kite", onePicture)
	b.See("button", "mended kite")
}

// useResults repeats a run, takes its inputs, and compares two results.
func useResults(t *testing.T, b *browser.Browser) {
	t.Helper()
	b.ClickOn("button", "More for mended kite")
	b.ClickOn("menuitem", "New seed")
	b.Until(`[...document.querySelectorAll("article")].filter(a => a.ariaLabel === "mended kite" && a.querySelector("[data-result]")).length === 2`)
	seeds := b.Eval(`[...document.querySelectorAll("article")].filter(a => a.ariaLabel === "mended kite").map(a => /seed (\d+)/.exec(a.innerText)[1]).join(" ")`)
	if pair := strings.Fields(seeds); len(pair) != 2 || pair[0] == pair[1] {
		t.Errorf("the seeds of a run and of its repetition with a new seed are %q", seeds)
	}

	b.TypeInto("textbox", "Prompt", "something else")
	b.ClickOn("button", "Use inputs")
	holds(b, "prompt", "mended kite")
	holds(b, "script", onePicture)

	b.ClickOn("button", "Compare")
	b.ClickOn("button", "red kite, 1 of 2")
	b.ClickOn("button", "red kite, 2 of 2")
	b.See("heading", "Compare")
	b.Until(`[...document.querySelectorAll("dialog[open] figure img")].filter(i => i.naturalWidth > 0).length === 2`)
	wantAccessible(t, b, "the comparison")
	keepLooks(t, b, "compare")
	b.ClickOn("button", "Wipe")
	b.See("slider", "Position of the border")
	b.Press("Escape")
	b.Until(`!document.querySelector("dialog[open]")`)
}

// copyAsCode runs the code of a run in every language that this machine has.
func copyAsCode(t *testing.T, s *site, n *node, b *browser.Browser) {
	t.Helper()
	b.TypeInto("textbox", "Prompt", `a kite's "tail" & $HOME`)
	b.ClickOn("button", "As code")
	b.See("region", "The run in curl")
	wantAccessible(t, b, "the code of a run")
	keepLooks(t, b, "code")

	path, err := program.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(path, filepath.Join(dir, "atelier")); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		language, file string
		command        []string // its last word is the file
	}{
		{"curl", "run.sh", []string{"sh"}},
		{"Go", "main.go", []string{"go", "run"}},
		{"Python", "run.py", []string{"python3"}},
		{"JavaScript", "run.mjs", []string{"node"}},
		{"Command line", "run-atelier.sh", []string{"sh"}},
	} {
		b.ClickOn("button", one.language)
		b.See("region", "The run in "+one.language)
		code := b.Eval(`document.querySelector("dialog[open] pre").textContent`)
		write(t, dir, one.file, code)
		program := one.command[0]
		if one.language == "curl" {
			program = "curl"
		}
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("the code in %s is not run: %v", one.language, err)
			continue
		}

		before := n.countRuns()
		cmd := exec.CommandContext(t.Context(), one.command[0], append(one.command[1:], filepath.Join(dir, one.file))...)
		cmd.Dir = dir
		if one.language == "Go" {
			cmd.Dir = "../.." // inside of a checkout, as the sheet says
		}
		cmd.Env = append(os.Environ(), "ATELIER_TOKEN="+n.token, "PATH="+dir+":"+os.Getenv("PATH"))
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("the code in %s: %v\n%s\n%s", one.language, err, said, code)
		}
		if after := n.countRuns(); after != before+1 {
			t.Errorf("the code in %s started %d runs: %s", one.language, after-before, said)
		}
	}
	b.Press("Escape")
	b.Until(`!document.querySelector("dialog[open]")`)
	b.Until(`[...document.querySelectorAll("article")].filter(a => a.ariaLabel.startsWith("a kite's") && a.querySelector("[data-result]")).length >= 1`)
}

// countRuns returns the number of the runs of the person with the node's token.
func (n *node) countRuns() int {
	n.t.Helper()
	return len(n.json("/api/v2/generations?limit=100")["data"].([]any))
}

// refuseForBalance asks for more than the balance pays, and takes the way out.
func refuseForBalance(t *testing.T, b *browser.Browser) {
	t.Helper()
	b.ClickOn("button", "Tool: Painter…")
	b.ClickOn("button", "Oil painting…")
	b.See("button", "Tool: Oil painting…")
	b.TypeInto("textbox", "Prompt", "a harbour")
	says(b, "600 tokens")
	b.ClickOn("button", "More")
	b.See("alert", "")
	wantAccessible(t, b, "the reason why a run cannot start")
	keepLooks(t, b, "create-no-balance")
	b.ClickOn("button", "Create…")
	b.ClickOn("button", "Make 1")
	says(b, "left after it")
	holds(b, "prompt", "a harbour")
}

// TestStudioFields fills in every type of field by its role and name, with files
// that are chosen, dropped and taken from the library, and looks at what the tool
// received.
func TestStudioFields(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		tools := giveTools(t, s)
		n := s.serve()
		b := openStudio(t, n)
		n.token = s.do("admin", "token", "create", "--email", "anna@example.com", "--name", "test")["token"].(string)
		b.TypeInto("textbox", "Prompt", "a picture for the library")
		b.ClickOn("button", "Create…")
		b.Until(aPictureIsThere)

		b.Goto(n.url + "/create/" + n.tools("", nil)["Echo"])
		b.See("heading", "Words")
		says(b, "Read the note.")
		fillWords(b)
		fillChoices(b)
		fillFiles(t, b, filepath.Join(tools, "good.png"))
		wantAccessible(t, b, "a form with every type of field")
		keepLooks(t, b, "fields")

		b.Reload()
		b.Until(`document.querySelectorAll("form fieldset li").length === 6`)
		b.ClickOn("button", "Create…")
		says(b, "a fox")
		b.Until(`(a => a?.ariaLabel === "a fox" && a.querySelector("[data-result]") !== null)(document.querySelector("article"))`)
		wantReceived(t, n)
		wantNoComplaints(t, b)
		n.stop()
		s.check()
	})
}

// fillWords fills in the fields that are typed into.
func fillWords(b *browser.Browser) {
	for _, field := range [][2]string{{"Prompt", "a fox"}, {"Avoid", "snow"}, {"Title", "Foxes"}, {"Story", "One.\nTwo."}} {
		b.TypeInto("textbox", field[0], field[1])
	}
	b.TypeInto("spinbutton", "Strength", "0.75")
	b.TypeInto("spinbutton", "Factor", "3")
	b.Focus("slider", "Guidance, slider")
	b.Press("End")
	b.TypeInto("spinbutton", "Steps", "12")
	b.ClickOn("button", "More number…")
	b.TypeInto("spinbutton", "Number", "42")
	b.TypeInto("textbox", "Seed", "7")
}

// fillChoices fills in the fields that offer choices.
func fillChoices(b *browser.Browser) {
	b.Focus("switch", "Tidy")
	b.Press("Space")
	b.Focus("combobox", "Style")
	b.Press("ArrowDown")
	b.ClickOn("radio", "Merry")
	b.ClickOn("radio", "Large model")
	b.ClickOn("checkbox", "Red")
	b.ClickOn("checkbox", "Blue")
	b.ClickOn("radio", "Own")
	b.TypeInto("spinbutton", "Width", "640")
	b.TypeInto("spinbutton", "Height", "320")
}

// fillFiles chooses, drops and takes files.
func fillFiles(t *testing.T, b *browser.Browser, picture string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "tone.wav", wavFile())
	write(t, dir, "cube.glb", glbFile(`{"asset":{"version":"2.0"}}`))
	write(t, dir, "page.txt", "no picture")
	field := func(name string) string { return `input[type=file][aria-label="` + name + `"]` }

	b.SetFiles(field("Picture"), filepath.Join(dir, "page.txt"))
	says(b, "page.txt is of a type that this input does not take. It takes PNG.")
	b.SetFiles(field("Picture"), picture)
	saysNot(b, "page.txt")
	video, err := filepath.Abs("testdata/short.mp4")
	if err != nil {
		t.Fatal(err)
	}
	b.SetFiles(field("Video"), video)
	b.SetFiles(field("Sound"), filepath.Join(dir, "tone.wav"))
	b.SetFiles(field("Object"), filepath.Join(dir, "cube.glb"))

	// One of the pictures is dropped, the other one is in the library.
	b.Eval(`(async () => {
		const canvas = new OffscreenCanvas(20, 20);
		canvas.getContext("2d").fillRect(0, 0, 9, 9);
		const data = new DataTransfer();
		data.items.add(new File([await canvas.convertToBlob()], "dropped.png", {type: "image/png"}));
		const place = document.querySelector('` + field("Pictures") + `').parentElement;
		place.dispatchEvent(new DragEvent("drop", {bubbles: true, cancelable: true, dataTransfer: data}));
		return 0;
	})()`)
	b.See("button", "Remove dropped.png")
	b.Until(`(f => (f && f.querySelectorAll("button").length > 1 && [...f.querySelectorAll("button")].find(b => b.textContent.includes("From the library")).click(), !!f))([...document.querySelectorAll("fieldset")].find(f => f.querySelector(":scope > legend")?.textContent.startsWith("Pictures")))`)
	b.See("heading", "Choose from the library")
	b.ClickOn("button", "a picture for the library")
	b.ClickOn("button", "Use 1 file")
	b.Until(`document.querySelectorAll("form fieldset li").length === 6`)
}

// wantReceived holds what the tool received against what was put in.
func wantReceived(t *testing.T, n *node) {
	t.Helper()
	run := n.json("/api/v2/generations?limit=1")["data"].([]any)[0].(map[string]any)
	outputs := run["outputs"].([]any)
	if len(outputs) != 1 {
		t.Fatalf("the run = %v, want one result", run)
	}
	output := outputs[0].(map[string]any)
	response, err := http.Get(output["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var job struct {
		Seed    int
		Results int `json:"num_results"`
		Values  map[string]any
		Files   map[string][]map[string]any
	}
	if err := json.Unmarshal(body, &job); err != nil {
		t.Fatalf("the tool received %s: %v", body, err)
	}

	want := map[string]any{
		"prompt": "a fox", "avoid": "snow", "title": "Foxes", "story": "One.\nTwo.", "strength": 0.75, "factor": 3.0,
		"guidance": 20.0, "steps": 12.0, "number": 42.0, "seed": 7.0, "tidy": true, "style": "wild", "mood": "merry",
		"model": "large", "colours": []any{"red", "blue"}, "size": map[string]any{"width": 640.0, "height": 320.0},
	}
	for key, value := range want {
		if got := job.Values[key]; !reflect.DeepEqual(got, value) {
			t.Errorf("the tool received %s = %v, want %v", key, got, value)
		}
	}
	for key, types := range map[string][]string{
		"picture": {"image/png"}, "pictures": {"image/png", "image/png"}, "video": {"video/mp4"}, "sound": {"audio/wav"}, "model3d": {"model/gltf-binary"},
	} {
		var got []string
		for _, file := range job.Files[key] {
			got = append(got, file["mime_type"].(string))
		}
		if !reflect.DeepEqual(got, types) {
			t.Errorf("the tool received the files %v for %s, want %v", got, key, types)
		}
	}
	if job.Seed != 7 || job.Results != 1 {
		t.Errorf("the tool received seed %d and %d results, want 7 and 1", job.Seed, job.Results)
	}
}

// wavFile is a tenth of a second of silence.
func wavFile() string {
	const samples = 800
	head := binary.LittleEndian.AppendUint32([]byte("RIFF"), 36+samples)
	head = append(head, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	head = binary.LittleEndian.AppendUint32(head, 8000)
	head = binary.LittleEndian.AppendUint32(head, 8000)
	head = append(head, "\x01\x00\x08\x00data"...)
	head = binary.LittleEndian.AppendUint32(head, samples)
	return string(head) + strings.Repeat("\x80", samples)
}

// glbFile is a 3D model that contains the scene alone.
func glbFile(scene string) string {
	scene += strings.Repeat(" ", (4-len(scene)%4)%4)
	head := binary.LittleEndian.AppendUint32([]byte("glTF"), 2)
	head = binary.LittleEndian.AppendUint32(head, uint32(20+len(scene)))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(scene)))
	return string(head) + "JSON" + scene
}

// TestStudioCreateKeys does all of Create with the keyboard alone.
func TestStudioCreateKeys(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		giveTools(t, s)
		n := s.serve()
		b := openStudio(t, n)
		b.Reload()
		b.See("button", "Tool: Painter…")
		b.KeysOnly()

		b.Press("Tab")
		if !b.HasFocus("link", "Skip to the page") {
			t.Errorf("the first Tab leads to %s, want the link that skips to the page", b.Focused())
		}
		b.TabTo("button", "Tool: Painter…")
		b.Press("Enter")
		b.See("searchbox", "Search tools")
		b.Until(`document.activeElement.type === "search"`)
		typeKeys(b, "whis")
		b.Press("Enter")
		b.See("button", "Tool: Whistle…")
		b.TabTo("button", "Tool: Whistle…")
		b.Press("Enter")
		b.Until(`document.activeElement.type === "search"`)
		typeKeys(b, "paint")
		b.Press("Enter")
		b.See("button", "Tool: Painter…")

		b.TabTo("textbox", "Prompt")
		typeKeys(b, "a hill")
		b.TabTo("button", "Create…")
		b.Press("Enter")
		b.Until(aPictureIsThere)
		b.TabTo("button", "a hill")
		b.Press("f")
		b.Until(`document.querySelector("[data-result] [aria-pressed]").ariaPressed === "true"`)
		b.Press("Space")
		b.Until(`document.querySelector("dialog[open] img")?.naturalWidth > 0`)
		wantAccessible(t, b, "the large view")
		keepLooks(t, b, "viewer")
		b.Press("Escape")
		b.Until(`!document.querySelector("dialog[open]") && document.activeElement.matches("[data-open]")`)
		b.Press("Enter")
		b.See("heading", "Result")
		wantAccessible(t, b, "the details of a result")
		b.Press("Escape")
		b.Until(`!document.querySelector("dialog[open]") && document.activeElement.matches("[data-open]")`)
		b.Press("p")
		b.See("heading", "Pin to a board")
		b.Until(`document.activeElement.matches("dialog[open] input")`)
		typeKeys(b, "Hills")
		b.Strike("Enter")
		says(b, "Pinned to Hills.")
		b.Until(`!document.querySelector("dialog[open]") && document.activeElement.matches("[data-open]")`)
		b.Press("n")
		b.Until(`document.querySelectorAll("article [data-result]").length === 2`)

		b.Press("Home")
		b.Press("c")
		b.Press("ArrowDown")
		b.Press("c")
		b.See("heading", "Compare")
		b.Press("Escape")
		b.Until(`!document.querySelector("dialog[open]")`)

		b.TabTo("button", "More…")
		b.Press("Enter")
		b.See("textbox", "Script")
		b.TabTo("textbox", "Script")
		typeKeys(b, `[{"hang":true}]`)
		b.Press("Ctrl+Enter")
		b.See("button", "Cancel")
		b.TabTo("button", "Cancel")
		b.Press("Enter")
		says(b, "Cancelled. It cost nothing.")
		wantNoComplaints(t, b)
		n.stop()
		s.check()
	})
}

// typeKeys presses the keys of a text, one after the other.
func typeKeys(b *browser.Browser, text string) {
	for _, key := range text {
		if key == ' ' {
			b.Press("Space")
		} else {
			b.Press(string(key))
		}
	}
}
