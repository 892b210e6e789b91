package library_test

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/file/library"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func links(now time.Time) library.URLSigner {
	return library.URLSigner{Key: bytes.Repeat([]byte{7}, 32), BaseURL: "https://media.example", Lifetime: time.Hour, Now: func() time.Time { return now }}
}

// address takes an address apart as the edge does.
func address(t *testing.T, text string) (kind library.URLKind, id, variant string, query url.Values) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(u.EscapedPath(), "/")
	if len(parts) != 6 || parts[1] != "media" {
		t.Fatalf("address = %s", text)
	}
	id, _ = url.PathUnescape(parts[3])
	return library.URLKind(parts[2]), id, parts[4], u.Query()
}

// refusedAddress holds an error to the one answer there is.
func refusedAddress(t *testing.T, what string, g library.SignedURL, err error) {
	t.Helper()
	f, ok := err.(*fault.Error)
	if !ok || f.Code != fault.Forbidden || f.Message != invalidURL.Message || f.Details["reason"] != "signature" || g != (library.SignedURL{}) {
		t.Errorf("%s: %+v, %v, want %v", what, g, err, invalidURL)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	person := ids.New()
	for _, want := range []library.SignedURL{
		{Kind: library.KindUpload, ID: ids.New(), Variant: library.VariantFile, ViewerID: person},
		{Kind: library.KindResult, ID: uuid.NewString(), Variant: library.VariantThumb, ViewerID: person},
		{Kind: library.KindRunPreview, ID: uuid.NewString(), Variant: library.VariantPreview, ViewerID: person},
	} {
		text := links(noon).SignURL(want.Kind, want.ID, want.Variant, want.ViewerID, "a cat?.png")
		if !strings.HasPrefix(text, "https://media.example/media/"+string(want.Kind)+"/"+want.ID+"/"+want.Variant+"/a%20cat%3F.png?") {
			t.Errorf("address = %s", text)
		}
		kind, id, variant, query := address(t, text)
		want.Expires = time.Unix(noon.Add(time.Hour).Unix(), 0)
		for _, at := range []time.Time{noon, noon.Add(time.Hour - 1)} {
			if got, err := links(at).VerifyURL(kind, id, variant, query); err != nil || got != want {
				t.Errorf("%v: grant = %+v, %v, want %+v", at, got, err, want)
			}
		}
		for _, at := range []time.Time{noon.Add(time.Hour), noon.Add(8760 * time.Hour)} {
			g, err := links(at).VerifyURL(kind, id, variant, query)
			refusedAddress(t, "expired", g, err)
		}
		other := links(noon)
		other.Key = bytes.Repeat([]byte{8}, 32)
		g, err := other.VerifyURL(kind, id, variant, query)
		refusedAddress(t, "another key", g, err)
	}
}

func TestAlteredAddresses(t *testing.T) {
	t.Parallel()
	l := links(noon)
	kind, id, variant, query := address(t, l.SignURL(library.KindResult, uuid.NewString(), library.VariantFile, ids.New(), "a.png"))
	parts := map[string]string{"kind": string(kind), "id": id, "variant": variant, "v": query.Get("v"), "e": query.Get("e"), "s": query.Get("s")}
	open := func(p map[string]string) (library.SignedURL, error) {
		return l.VerifyURL(library.URLKind(p["kind"]), p["id"], p["variant"], url.Values{"v": {p["v"]}, "e": {p["e"]}, "s": {p["s"]}})
	}
	if _, err := open(parts); err != nil {
		t.Fatal(err)
	}
	with := func(name, value string) map[string]string {
		p := map[string]string{}
		for k, v := range parts {
			p[k] = v
		}
		p[name] = value
		return p
	}
	for name, value := range parts {
		for i := range len(value) * 8 { // every bit
			b := []byte(value)
			b[i/8] ^= 1 << (i % 8)
			g, err := open(with(name, string(b)))
			refusedAddress(t, name+" as "+string(b), g, err)
		}
		for _, other := range []string{"", value + "=", value + "\n", "\r\n" + value, value + "A", value[:len(value)-1], " " + value, "+" + value, "0" + value} {
			g, err := open(with(name, other))
			refusedAddress(t, name+" as "+other, g, err)
		}
	}
	// A letter can go from one part to the next only with a new seal.
	g, err := open(with("id", id+variant))
	refusedAddress(t, "moved", g, err)
	for name, other := range map[string]string{"kind": "u", "id": uuid.NewString(), "variant": library.VariantThumb, "v": ids.New()} {
		g, err := open(with(name, other))
		refusedAddress(t, "swapped "+name, g, err)
	}
	for what, q := range map[string]url.Values{
		"nothing":  {},
		"no seal":  {"v": query["v"], "e": query["e"]},
		"no time":  {"v": query["v"], "s": query["s"]},
		"two ends": {"v": query["v"], "e": {query.Get("e"), query.Get("e")}, "s": query["s"]},
	} {
		g, err := l.VerifyURL(kind, id, variant, q)
		refusedAddress(t, what, g, err)
	}
	query.Set("download", "1")
	if _, err := l.VerifyURL(kind, id, variant, query); err != nil {
		t.Errorf("a parameter of others: %v", err)
	}
}

// The parts of a seal can't be told apart wrongly: what is signed for one pair
// of id and variant opens no other pair that reads alike.
func TestPartsOfAnAddressAreApart(t *testing.T) {
	t.Parallel()
	l := links(noon)
	_, _, _, query := address(t, l.SignURL("r", "ab", "c", "v", "a.png"))
	g, err := l.VerifyURL("r", "a", "bc", query)
	refusedAddress(t, "shifted", g, err)
}

// The URL of a file is the same from midnight to midnight in UTC and valid for
// Lifetime at least. URLs of previews and inputs are new in each second.
func TestAddressesStayForADay(t *testing.T) {
	t.Parallel()
	const week = 7 * 24 * time.Hour
	at := func(now time.Time, lifetime time.Duration, kind library.URLKind) string {
		l := links(now)
		l.Lifetime = lifetime
		return l.SignURL(kind, "id", library.VariantFile, "viewer", "a.png")
	}
	midnight := noon.Truncate(24 * time.Hour)
	for _, kind := range []library.URLKind{library.KindUpload, library.KindResult} {
		first := at(midnight.Add(time.Second), week, kind)
		for _, later := range []time.Duration{time.Minute, 12 * time.Hour, 24*time.Hour - 1, 24 * time.Hour} {
			if got := at(midnight.Add(later), week, kind); got != first {
				t.Errorf("%v after midnight = %s, want %s", later, got, first)
			}
		}
		if got := at(midnight.Add(24*time.Hour+1), week, kind); got == first {
			t.Errorf("the next day has the same URL: %s", got)
		}
		_, _, _, query := address(t, first)
		for _, c := range []struct {
			now    time.Time
			isGood bool
		}{{midnight.Add(24*time.Hour + week - time.Second), true}, {midnight.Add(24*time.Hour + week), false}} {
			if _, err := links(c.now).VerifyURL(kind, "id", library.VariantFile, query); (err == nil) != c.isGood {
				t.Errorf("at %v: %v, want valid: %t", c.now, err, c.isGood)
			}
		}
		// A lifetime below a day is never more than doubled.
		if a, b := at(noon.Add(time.Second), time.Hour, kind), at(noon.Add(time.Hour), time.Hour, kind); a != b {
			t.Errorf("within an hour: %s and %s", a, b)
		}
		if a, b := at(noon.Add(time.Second), time.Hour, kind), at(noon.Add(time.Hour+1), time.Hour, kind); a == b {
			t.Errorf("after an hour still %s", a)
		}
	}
	for _, kind := range []library.URLKind{library.KindRunPreview, library.KindInput} {
		if a, b := at(noon, week, kind), at(noon.Add(time.Second), week, kind); a == b {
			t.Errorf("kind %s: a second later still %s", kind, a)
		}
	}
}
