package api_test

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/url"
	"path"
	"strings"
	"testing"

	"atelier/internal/web/api/wire"
)

// nameOf is what an address ends in.
func nameOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return path.Base(u.Path)
}

// TestAddressesEndInNames reads addresses wherever they are made. The name has
// the suffix of the bytes behind it, and is what the file is saved as.
func TestAddressesEndInNames(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		look := func(what, address, want string) {
			t.Helper()
			a := m.fetch("GET", address)
			_, saved, err := mime.ParseMediaType(a.Header.Get("Content-Disposition"))
			if err != nil || nameOf(t, address) != want || a.StatusCode != 200 || saved["filename"] != want {
				t.Errorf("%s: %d at %s, saved as %q (%v), want %q", what, a.StatusCode, address, saved["filename"], err, want)
			}
		}
		u := m.upload("?name="+url.QueryEscape("Sunset, 100% (1).PNG"), picture(30, 20))
		look("an upload", u.URL, "Sunset, 100% (1).png")
		look("its thumbnail", *u.ThumbURL, "Sunset, 100% (1)-thumb.png")
		look("a name that lies", m.upload("?name=sunset.jpg", picture(3, 2)).URL, "sunset.jpg.png")
		nameless := m.upload("", picture(3, 2))
		look("no name", nameless.URL, "file.png")
		look("no name, small", *nameless.ThumbURL, "file-thumb.png")

		m.work()
		made := m.done("", m.body("one", `,"inputs":{"prompt":"a secret wish"}`))
		id := made.Outputs[0].ID
		slug := "one-" + id[len(id)-8:]
		look("a result", *made.Outputs[0].URL, slug+".png")
		thumb := nameOf(t, *made.Outputs[0].ThumbURL)
		look("its thumbnail", *made.Outputs[0].ThumbURL, thumb)
		if !strings.HasPrefix(thumb, slug+"-thumb.") {
			t.Errorf("its thumbnail is called %s", thumb)
		}
		item := getJSON[wire.LibraryItemDetail](m.service, "/api/v2/library/"+id)
		look("a library item", item.URL, slug+".png")
		look("its thumbnail", *item.ThumbURL, thumb)
		listed := getJSON[wire.LibraryList](m.service, "/api/v2/library").Data[0]
		look("a listed item", listed.URL, slug+".png")

		board := decodeAnswer[wire.Board](t, m.send("POST", "/api/v2/boards", "application/json", strings.NewReader(`{"name":"x"}`)))
		for ref, want := range map[string][2]string{
			`"LIBRARY_REF","ref":"` + id + `"`:  {slug + ".png", thumb},
			`"UPLOAD_REF","ref":"` + u.ID + `"`: {"Sunset, 100% (1).png", "Sunset, 100% (1)-thumb.png"},
		} {
			n := decodeAnswer[wire.Node](t, m.send("POST", "/api/v2/boards/"+board.ID+"/nodes", "application/json", strings.NewReader(`{"kind":`+ref+`}`)))
			look("a node", n.Item.URL, want[0])
			look("its thumbnail", *n.Item.ThumbURL, want[1])
		}

		// A tool that is no longer offered keeps the name.
		m.setCatalog(files("other.yaml", manifest("other", "")))
		look("a result of a tool that is gone", *getJSON[wire.Generation](m.service, "/api/v2/generate/"+made.RequestID).Outputs[0].URL, slug+".png")
	})
}

// TestNamesInAddressesMeanNothing opens an address with other names than its own.
func TestNamesInAddressesMeanNothing(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		data := picture(30, 20)
		u := m.upload("?name=sunset.png", data)
		before, after, _ := strings.Cut(u.URL, "/sunset.png")
		for _, name := range []string{
			"", "/other.jpg", "/x.html", "/%2e%2e", "/..%2f..%2fetc%2fpasswd", "/a%0d%0aSet-Cookie:%20x=y", "/%00", "/%22;filename=evil.exe", "/" + strings.Repeat("n", 2000), "/%ff", "/%E2%80%AEgnp.exe",
		} {
			a := m.fetch("GET", before+name+after)
			if a.StatusCode != 200 || !bytes.Equal(a.body, data) || a.Header.Get("Content-Type") != "image/png" {
				t.Errorf("%q = %d %.60s", name, a.StatusCode, a.body)
			}
			if got := a.Header.Get("Content-Disposition"); got != "inline; filename=sunset.png" || a.Header.Get("Set-Cookie") != "" {
				t.Errorf("%q: Content-Disposition = %q", name, got)
			}
		}
		// The name does not stand in for what is signed.
		for _, wrong := range []string{strings.Replace(u.URL, "/file/", "/thumb/", 1), strings.Replace(u.URL, "s=", "s=A", 1)} {
			m.fetch("GET", wrong).checkStatus(t, wrong, 403, "FORBIDDEN")
		}
	})
}

// TestWebhookAddressesEndInNames looks at what is posted when a run has ended.
func TestWebhookAddressesEndInNames(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		made := m.done("", m.body("one", ""))
		body, err := m.parts.Runs.EventBody(t.Context(), made.RequestID)
		if err != nil {
			t.Fatal(err)
		}
		var event wire.WebhookEvent
		if err := json.Unmarshal(body, &event); err != nil {
			t.Fatal(err)
		}
		id := event.Data.Outputs[0].ID
		if got, want := nameOf(t, *event.Data.Outputs[0].URL), "one-"+id[len(id)-8:]+".png"; got != want {
			t.Errorf("its result is called %s, want %s", got, want)
		}
	})
}
