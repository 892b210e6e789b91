package browser_test

import (
	"bytes"
	"fmt"
	"html"
	"image/png"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"atelier/internal/testkit/browser"
	"atelier/internal/testkit/watch"
)

// site serves pages by path, and /echo, which shows the form it was sent and
// the cookies.
func site(t *testing.T, pages map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("X-Page", r.URL.Path)
		switch r.URL.Path {
		case "/echo":
			r.ParseForm()
			fmt.Fprintf(w, "<p>%s %s</p><p>%s</p>", r.Method, html.EscapeString(r.Form.Encode()), html.EscapeString(r.Header.Get("Cookie")))
		case "/cookie":
			http.SetCookie(w, &http.Cookie{Name: "who", Value: r.URL.Query().Get("who"), HttpOnly: true, SameSite: http.SameSiteStrictMode})
			fmt.Fprint(w, "set")
		case "/strict":
			w.Header().Set("Content-Security-Policy", "default-src 'none'")
			fmt.Fprint(w, `<script>alert("forbidden")</script>`)
		case "/proud":
			w.Header().Set("X-Frame-Options", "DENY")
			fmt.Fprint(w, "proud")
		default:
			page, ok := pages[r.URL.Path]
			if !ok {
				w.WriteHeader(http.StatusNotFound)
			}
			fmt.Fprint(w, "<!doctype html>"+page)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

const form = `<title>Form</title><form action="/echo" method="post">
	<input id="a" name="first" value="old"><input name="second"><input id="req" name="third" required>
	<select name="list"><option>one<option>two</select>
	<button id="send" name="act" value="sent">Send</button><button id="idle" type="button" onclick="this.textContent = 'idled'">Idle</button>
</form><a id="far" href="/far" style="position: absolute; top: 5000px">Far</a><a id="here" href="#there">Here</a>`

func TestPages(t *testing.T) {
	t.Parallel()
	url := site(t, map[string]string{"/": `<h1>Grüße</h1><p hidden>no</p>`})
	b := browser.Open(t)
	b.Goto(url + "/")
	want(t, "address", b.URL(), url+"/")
	want(t, "text", b.Text(), "Grüße")
	want(t, "header", b.Header("x-page"), "/")
	if b.Status() != 200 || !strings.Contains(b.HTML(), "<p hidden") {
		t.Errorf("status = %d, html = %s", b.Status(), b.HTML())
	}
	b.Goto(url + "/none")
	if b.Status() != 404 || len(b.Errors()) != 0 {
		t.Errorf("status = %d, errors = %q, want 404 and none", b.Status(), b.Errors())
	}
	want(t, "no header", b.Header("x-none"), "")
}

func TestForms(t *testing.T) {
	t.Parallel()
	url := site(t, map[string]string{"/": form, "/far": "far away"})
	b := browser.Open(t)
	b.Goto(url + "/")
	b.Fill("#a", `new "🦊"`)
	b.Fill("[name=second]", "x")
	b.Fill("[name=second]", "")
	b.Fill("[name=list]", "two")
	b.Click("#idle")
	want(t, "button", b.Eval(`document.querySelector("#idle").textContent`), "idled")
	b.Click("#send") // the browser asks for the third field instead
	want(t, "address", b.URL(), url+"/")
	b.Fill("#req", "r")
	b.Click("#send")
	want(t, "text", b.Text(), "POST act=sent&first=new+%22%F0%9F%A6%8A%22&list=two&second=&third=r")
	want(t, "header", b.Header("X-Page"), "/echo")

	b.Goto(url + "/")
	b.Click("#here")
	want(t, "address", b.URL(), url+"/#there")
	b.Tap("#idle")
	want(t, "button", b.Eval(`document.querySelector("#idle").textContent`), "idled")
	b.Click("#far")
	want(t, "text", b.Text(), "far away")
}

func TestKeys(t *testing.T) {
	t.Parallel()
	url := site(t, map[string]string{"/": form, "/far": "far away"})
	b := browser.Open(t)
	b.Goto(url + "/")
	want(t, "focus", b.Focused(), "body")
	b.Press("Tab")
	want(t, "focus", b.Focused(), "input#a[name=first]")
	b.Press("Tab")
	want(t, "focus", b.Focused(), "input[name=second]")
	b.Press("Shift+Tab")
	want(t, "focus", b.Focused(), "input#a[name=first]")
	b.Fill("#a", "")
	b.Press("z")
	b.Press("Enter") // a required field is empty
	b.Fill("#req", "r")
	b.Press("Enter")
	want(t, "text", b.Text(), "POST act=sent&first=z&list=one&second=&third=r")
	b.Goto(url + "/")
	b.Fill("#req", "r")
	b.Submit("#a")
	want(t, "text", b.Text(), "POST act=sent&first=old&list=one&second=&third=r")
}

func TestWindowsAreApart(t *testing.T) {
	t.Parallel()
	url := site(t, nil)
	one, two := browser.Open(t), browser.Open(t)
	one.Goto(url + "/cookie?who=one")
	two.Goto(url + "/echo")
	want(t, "text of the other", two.Text(), "GET")
	two.Goto(url + "/cookie?who=two")
	one.Goto(url + "/echo")
	want(t, "text of the first", one.Text(), "GET\n\nwho=one")
	want(t, "script's cookies", one.Eval(`document.cookie`), "")
}

func TestSitesOfATest(t *testing.T) {
	t.Parallel()
	url := site(t, map[string]string{"/": `<a href="PLACE/echo">go</a>`})
	evil := strings.Replace(url, "127.0.0.1", "evil.test", 1)
	b := browser.Open(t)
	b.Goto(url + "/cookie?who=me")
	b.Goto(evil + "/")
	b.Eval(`document.querySelector("a").href = "` + url + `/echo"`)
	b.Click("a")
	want(t, "text after a link from another site", b.Text(), "GET")
	b.Goto(url + "/echo")
	want(t, "text", b.Text(), "GET\n\nwho=me")
}

func TestDialogsAndErrors(t *testing.T) {
	t.Parallel()
	url := site(t, map[string]string{"/": `<script>alert("boo"); console.error("bad", 42); document.title = confirm("sure?"); nonsense()</script>`})
	b := browser.Open(t)
	b.Goto(url + "/")
	if got := b.Dialogs(); !slices.Equal(got, []string{"boo", "sure?"}) {
		t.Errorf("dialogs = %q", got)
	}
	want(t, "answer", b.Eval(`document.title`), "false")
	got := strings.Join(b.Errors(), "\n")
	if !strings.Contains(got, "bad 42") || !strings.Contains(got, "nonsense is not defined") {
		t.Errorf("errors = %s", got)
	}
	b.Goto(url + "/strict")
	watch.Until(t, "the policy's error", func() bool {
		return strings.Contains(strings.Join(b.Errors(), "\n"), "Content Security Policy")
	})
	if got := b.Dialogs(); len(got) != 2 {
		t.Errorf("dialogs = %q, want no more", got)
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"/meek": "meek"}
	url := site(t, pages)
	pages["/"] = `<iframe src="` + url + `/proud"></iframe><iframe src="` + url + `/meek"></iframe>`
	b := browser.Open(t)
	b.Goto(strings.Replace(url, "127.0.0.1", "evil.test", 1) + "/")
	if got := b.FrameURLs(); !slices.Equal(got, []string{"chrome-error://chromewebdata/", url + "/meek"}) {
		t.Errorf("frames = %q", got)
	}
	want(t, "header", b.Header("X-Page"), "/")
	watch.Until(t, "the frame's error", func() bool { return strings.Contains(strings.Join(b.Errors(), "\n"), "X-Frame-Options") })
}

func TestNoScript(t *testing.T) {
	t.Parallel()
	url := site(t, map[string]string{"/": `<script>document.write("script")</script><noscript>none</noscript>` + form})
	b := browser.Open(t)
	b.NoScript()
	b.Goto(url + "/")
	if got := b.Text(); !strings.HasPrefix(got, "none") {
		t.Errorf("text = %q, want that of a page without scripts", got)
	}
	b.Fill("#a", "")
	b.Fill("#req", "r")
	b.Click("#send")
	want(t, "text", b.Text(), "POST act=sent&first=&list=one&second=&third=r")
}

func TestPhone(t *testing.T) {
	t.Parallel()
	url := site(t, map[string]string{"/": `<meta name="viewport" content="width=device-width"><p>small</p>`})
	b := browser.Open(t)
	b.Width(360)
	b.Goto(url + "/")
	want(t, "width", b.Eval(`innerWidth`), "360")
	picture, err := png.Decode(bytes.NewReader(b.Screenshot()))
	if err != nil || picture.Bounds().Dx() != 360 {
		t.Errorf("picture = %v, %v, want 360 wide", picture, err)
	}
}
