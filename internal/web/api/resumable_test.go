package api_test

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the tus protocol requires it
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/principal"
	"atelier/internal/web/api/wire"
)

const resumablePath = "/api/v2/uploads/resumable"

// resumableID is the id of the upload that a creation made.
func resumableID(a answer) string {
	location, _, _ := strings.Cut(a.Header.Get("Location"), "?")
	return path.Base(location)
}

// begin creates a resumable upload and gives its address.
func (s *service) begin(query string, length int, header ...string) string {
	s.t.Helper()
	a := s.sendRequest("POST", resumablePath+query, append(header, "Tus-Resumable", "1.0.0", "Upload-Length", strconv.Itoa(length))...)
	return a.checkStatus(s.t, "a new resumable upload", 201, "").Header.Get("Location")
}

// patch sends bytes of a resumable upload.
func (s *service) patch(location string, offset int, data []byte, header ...string) answer {
	s.t.Helper()
	header = append(header, "Tus-Resumable", "1.0.0", "Upload-Offset", strconv.Itoa(offset))
	return s.send("PATCH", location, "application/offset+octet-stream", bytes.NewReader(data), header...)
}

// offset asks how many bytes have arrived.
func (s *service) offset(location string) answer {
	s.t.Helper()
	return s.sendRequest("HEAD", location, "Tus-Resumable", "1.0.0")
}

// checkNone requires that there is no resumable upload. The error of a HEAD has
// no body.
func (s *service) checkNone(location, what string) {
	s.t.Helper()
	if a := s.offset(location); a.StatusCode != 404 || a.Header.Get("Upload-Offset") != "" {
		s.t.Errorf("%s = %d %v, want 404", what, a.StatusCode, a.Header)
	}
}

// checkHeader requires values of headers; an empty one means that there is none.
func (a answer) checkHeader(t *testing.T, what string, want ...string) {
	t.Helper()
	for i := 0; i < len(want); i += 2 {
		if got := a.Header.Get(want[i]); got != want[i+1] {
			t.Errorf("%s: %s = %q, want %q", what, want[i], got, want[i+1])
		}
	}
}

func TestResumableUploads(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.sendRequest("OPTIONS", resumablePath, "Authorization", "").checkStatus(t, "options", 204, "").checkHeader(t, "options",
			"Tus-Resumable", "1.0.0", "Tus-Version", "1.0.0", "Tus-Max-Size", "52428800",
			"Tus-Extension", "creation,expiration,termination,checksum", "Tus-Checksum-Algorithm", "sha1,sha256")

		data := picture(40, 30)
		whole := strconv.Itoa(len(data))
		metadata := "filename " + base64.StdEncoding.EncodeToString([]byte("sun set.png")) + ",is_private, filetype aW1hZ2UvcG5n"
		a := m.sendRequest("POST", resumablePath, "Tus-Resumable", "1.0.0", "Upload-Length", whole, "Upload-Metadata", metadata, "Idempotency-Key", "k1")
		a.checkStatus(t, "create", 201, "").checkHeader(t, "create", "Tus-Resumable", "1.0.0", "Upload-Offset", "0", "Upload-Id", "", "Idempotent-Replayed", "")
		if expires, err := http.ParseTime(a.Header.Get("Upload-Expires")); err != nil || time.Until(expires) < 23*time.Hour {
			t.Errorf("it expires at %v, %v", expires, err)
		}
		location := a.Header.Get("Location")
		if location != resumablePath+"/"+resumableID(a) {
			t.Errorf("location = %s", location)
		}
		again := m.sendRequest("POST", resumablePath, "Tus-Resumable", "1.0.0", "Upload-Length", whole, "Upload-Metadata", metadata, "Idempotency-Key", "k1")
		again.checkStatus(t, "create again", 201, "").checkHeader(t, "create again", "Location", location, "Idempotent-Replayed", "true")
		m.sendRequest("POST", resumablePath, "Tus-Resumable", "1.0.0", "Upload-Length", "7", "Idempotency-Key", "k1").checkStatus(t, "another with the key", 409, "IDEMPOTENCY_KEY_CONFLICT")

		m.patch(location, 0, data[:20]).checkStatus(t, "the first bytes", 204, "").checkHeader(t, "the first bytes", "Upload-Offset", "20", "Upload-Id", "")
		m.patch(location, 0, data[:20]).checkStatus(t, "the same again", 409, "UPLOAD_OFFSET_CONFLICT").checkHeader(t, "the same again", "Upload-Offset", "20")
		m.offset(location).checkStatus(t, "offset", 200, "").checkHeader(t, "offset",
			"Upload-Offset", "20", "Upload-Length", whole, "Upload-Metadata", metadata, "Cache-Control", "no-store", "Tus-Resumable", "1.0.0")

		done := m.patch(location, 20, data[20:]).checkStatus(t, "the last bytes", 204, "")
		id := done.Header.Get("Upload-Id")
		done.checkHeader(t, "the last bytes", "Upload-Offset", whole, "Upload-Expires", "")
		m.offset(location).checkStatus(t, "offset at the end", 200, "").checkHeader(t, "offset at the end", "Upload-Offset", whole, "Upload-Id", id)
		m.patch(location, 20, data[20:]).checkStatus(t, "the last bytes again", 409, "UPLOAD_OFFSET_CONFLICT").checkHeader(t, "the last bytes again", "Upload-Offset", whole, "Upload-Id", id)
		u := getJSON[wire.Upload](m.service, "/api/v2/uploads/"+id)
		same := m.upload("?name=sun%20set.png", data)
		if u.Name != same.Name || u.Sha256 != same.Sha256 || u.SizeBytes != same.SizeBytes || u.ThumbURL == nil || u.Type != same.Type || *u.Width != 40 {
			t.Errorf("upload = %+v, want it like %+v", u, same)
		}

		// Deleting one leaves the other.
		m.sendRequest("DELETE", "/api/v2/uploads/"+id).checkStatus(t, "delete the file", 204, "")
		m.offset(location).checkStatus(t, "offset of a deleted file", 200, "")
		m.sendRequest("DELETE", location, "Tus-Resumable", "1.0.0").checkStatus(t, "terminate", 204, "").checkHeader(t, "terminate", "Tus-Resumable", "1.0.0")
		m.checkNone(location, "offset after the end")
		m.patch(location, 0, data).checkStatus(t, "bytes after the end", 404, "NOT_FOUND")
		m.sendRequest("DELETE", location, "Tus-Resumable", "1.0.0").checkStatus(t, "terminate again", 404, "NOT_FOUND")
	})
}

func TestResumableRefusals(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		data := picture(20, 20)
		for _, version := range []string{"", "0.2.2", "2.0.0"} {
			a := m.sendRequest("POST", resumablePath, "Tus-Resumable", version, "Upload-Length", "10")
			a.checkStatus(t, "version "+version, 412, "CONFLICT").checkHeader(t, "version "+version, "Tus-Version", "1.0.0")
		}
		for _, length := range []string{"", "0", "-1", "+5", "1.5", "0x10", "1_000", "x", "9223372036854775808", "99999999999999999999"} {
			m.sendRequest("POST", resumablePath, "Tus-Resumable", "1.0.0", "Upload-Length", length).checkStatus(t, "length "+length, 400, "INVALID_REQUEST")
		}
		for _, metadata := range []string{"filename", ",", "filename ***", "filename YQ", "a YQ==,a YQ==", "a YQ== b", " YQ==,", strings.Repeat("a", 4097)} {
			a := m.sendRequest("POST", resumablePath, "Tus-Resumable", "1.0.0", "Upload-Length", "5", "Upload-Metadata", metadata)
			if metadata == "filename" { // a name without a value is empty
				a.checkStatus(t, "metadata "+metadata, 201, "")
				continue
			}
			if a.checkStatus(t, "metadata "+metadata, 400, "INVALID_REQUEST"); !strings.Contains(string(a.body), `"Upload-Metadata"`) {
				t.Errorf("metadata %s = %s", metadata, a.body)
			}
		}
		for _, length := range []string{"52428801", "9223372036854775807"} {
			m.sendRequest("POST", resumablePath, "Tus-Resumable", "1.0.0", "Upload-Length", length).checkStatus(t, "a file of "+length+" bytes", 413, "UPLOAD_TOO_LARGE")
		}
		m.send("POST", resumablePath, "", nil, "Tus-Resumable", "1.0.0", "Upload-Length", "5", "Upload-Length", "6").checkStatus(t, "two lengths", 400, "INVALID_REQUEST")

		location := m.begin("", len(data))
		for _, c := range []struct {
			name, kind string
			header     []string
			status     int
			code       string
		}{
			{"another type", "image/png", []string{"Upload-Offset", "0"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
			{"no type", "", []string{"Upload-Offset", "0"}, 415, "UNSUPPORTED_MEDIA_TYPE"},
			{"no offset", "application/offset+octet-stream", nil, 400, "INVALID_REQUEST"},
			{"a bad offset", "application/offset+octet-stream", []string{"Upload-Offset", "-1"}, 400, "INVALID_REQUEST"},
			{"two offsets", "application/offset+octet-stream", []string{"Upload-Offset", "0", "Upload-Offset", "0"}, 400, "INVALID_REQUEST"},
			{"an offset without end", "application/offset+octet-stream", []string{"Upload-Offset", "9223372036854775808"}, 400, "INVALID_REQUEST"},
			{"the largest offset", "application/offset+octet-stream", []string{"Upload-Offset", "9223372036854775807"}, 409, "UPLOAD_OFFSET_CONFLICT"},
			{"another algorithm", "application/offset+octet-stream", []string{"Upload-Offset", "0", "Upload-Checksum", "md5 1B2M2Y8AsgTpgAmY7PhCfg=="}, 400, "INVALID_REQUEST"},
			{"a short checksum", "application/offset+octet-stream", []string{"Upload-Offset", "0", "Upload-Checksum", "sha1 YQ=="}, 400, "INVALID_REQUEST"},
			{"a wrong checksum", "application/offset+octet-stream", []string{"Upload-Offset", "0", "Upload-Checksum", "sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0="}, 460, "UPLOAD_CHECKSUM_MISMATCH"},
		} {
			m.send("PATCH", location, c.kind, bytes.NewReader(data), append(c.header, "Tus-Resumable", "1.0.0")...).checkStatus(t, c.name, c.status, c.code)
		}
		m.send("PATCH", location, "application/offset+octet-stream", bytes.NewReader(data), "Upload-Offset", "0").checkStatus(t, "no version", 412, "CONFLICT")
		m.sendRequest("DELETE", location).checkStatus(t, "an end without a version", 412, "CONFLICT")
		if a := m.sendRequest("HEAD", location, "Tus-Resumable", "0.2.2"); a.StatusCode != 412 || a.Header.Get("Tus-Version") != "1.0.0" {
			t.Errorf("the offset for another version = %d %v", a.StatusCode, a.Header)
		}
		m.patch(location, 0, append(data, 0)).checkStatus(t, "too many bytes", 413, "UPLOAD_TOO_LARGE")
		unknown := io.MultiReader(bytes.NewReader(data), strings.NewReader("x")) // has no Content-Length
		m.send("PATCH", location, "application/offset+octet-stream", unknown, "Tus-Resumable", "1.0.0", "Upload-Offset", "0").checkStatus(t, "too many bytes without a length", 413, "UPLOAD_TOO_LARGE")
		bert := m.as(m.addPerson("bert@example.com"))
		bert.checkNone(location, "the offset of a foreign one")
		bert.patch(location, 0, data).checkStatus(t, "bytes of a foreign one", 404, "NOT_FOUND")
		bert.sendRequest("DELETE", location, "Tus-Resumable", "1.0.0").checkStatus(t, "the end of a foreign one", 404, "NOT_FOUND")
		m.full.Store(true)
		m.patch(location, 0, data[:1]).checkStatus(t, "a full disk", 503, "UPSTREAM_UNAVAILABLE")
		m.sendRequest("POST", resumablePath, "Tus-Resumable", "1.0.0", "Upload-Length", "5").checkStatus(t, "a full disk", 503, "UPSTREAM_UNAVAILABLE")
		m.full.Store(false)
		m.offset(location).checkHeader(t, "after all that", "Upload-Offset", "0")

		first, second := sha1.Sum(data[:9]), sha256.Sum256(data[9:])
		encode := base64.StdEncoding.EncodeToString
		m.patch(location, 0, data[:9], "Upload-Checksum", "sha1 "+encode(first[:])).checkStatus(t, "a right checksum", 204, "")
		m.patch(location, 9, data[9:], "Upload-Checksum", "sha256 "+encode(second[:])).checkStatus(t, "the other algorithm", 204, "")

		text := []byte("this is no picture")
		location = m.begin("", len(text))
		m.patch(location, 0, text[:4]).checkStatus(t, "the beginning of a text", 204, "")
		a := m.patch(location, 4, text[4:]).checkStatus(t, "a text", 415, "UNSUPPORTED_MEDIA_TYPE")
		if !strings.Contains(string(a.body), `"path":"file"`) {
			t.Errorf("a text = %s", a.body)
		}
		m.checkNone(location, "a refused file")

		for range 15 { // one of the metadata is there
			m.begin("", 5)
		}
		a = m.sendRequest("POST", resumablePath, "Tus-Resumable", "1.0.0", "Upload-Length", "5").checkStatus(t, "one too many", 429, "RATE_LIMITED")
		if d := a.readError(t).Details; d["limit"] != 16.0 || d["window_seconds"] != 0.0 {
			t.Errorf("one too many = %s", a.body)
		}
	})
}

// TestResumableRevoked revokes the credential of an upload between two requests.
// Another credential of the same person goes on.
func TestResumableRevoked(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		data := picture(20, 20)
		id, token := m.site.Token("anna@example.com", "")
		lost := m.as(token)
		location := lost.begin("", len(data))
		lost.patch(location, 0, data[:9]).checkStatus(t, "the first bytes", 204, "")
		anna := principal.Principal{PersonID: getJSON[wire.Identity](m.service, "/api/v2/me").User.UID}
		if err := m.site.Accounts.AccessTokens.DeleteAccessToken(t.Context(), anna, id); err != nil {
			t.Fatal(err)
		}

		lost.patch(location, 9, data[9:]).checkStatus(t, "bytes with a revoked token", 401, "UNAUTHENTICATED")
		lost.sendRequest("DELETE", location, "Tus-Resumable", "1.0.0").checkStatus(t, "an end with a revoked token", 401, "UNAUTHENTICATED")
		if a := lost.offset(location); a.StatusCode != 401 || a.Header.Get("Upload-Offset") != "" {
			t.Errorf("the offset with a revoked token = %d %v", a.StatusCode, a.Header)
		}
		m.offset(location).checkHeader(t, "the offset with another token", "Upload-Offset", "9")
		m.patch(location, 9, data[9:]).checkStatus(t, "the rest with another token", 204, "")
	})
}

// TestLargeFilesInSmallForms uploads a file that is larger than a multipart form
// may be: that limit does not apply to files that are sent as they are.
func TestLargeFilesInSmallForms(t *testing.T) {
	t.Parallel()
	data := picture(100, 100)
	small := limits
	small.RequestBytes = int64(len(data)) / 2
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newRunFixture(t, db, small, keepSettings)
		m.upload("", data)
		location := m.begin("", len(data))
		if id := m.patch(location, 0, data).checkStatus(t, "all bytes", 204, "").Header.Get("Upload-Id"); id == "" {
			t.Error("the upload is not finished")
		}
		unknown := io.MultiReader(bytes.NewReader(data))
		m.send("POST", "/api/v2/uploads", "image/png", unknown).checkStatus(t, "a file without a length", 201, "")
	})
}

// TestResumableUploadsOfTeams follows the Location, which names the team.
func TestResumableUploadsOfTeams(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.addPerson("bert@example.com")
		team, tokens := m.team("Film", "anna@example.com", "bert@example.com")
		anna, bert := m.as(tokens[0]), m.as(tokens[1])
		data := picture(10, 10)
		location := anna.begin("?team_id="+team, len(data))
		if !strings.HasSuffix(location, "?team_id="+team) {
			t.Errorf("location = %s", location)
		}
		bert.checkNone(location, "that of a colleague")
		id := anna.patch(location, 0, data).checkStatus(t, "the bytes", 204, "").Header.Get("Upload-Id")
		bert.sendRequest("GET", "/api/v2/uploads/"+id+"?team_id="+team).checkStatus(t, "the file for a colleague", 200, "")
		m.sendRequest("GET", "/api/v2/uploads/"+id).checkStatus(t, "the file elsewhere", 404, "NOT_FOUND")
	})
}

// TestResumableConnectionCut cuts the connection in the middle of a request: the
// bytes that have arrived are kept.
func TestResumableConnectionCut(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		data := picture(200, 200)
		location := m.begin("", len(data))
		server, err := url.Parse(m.url)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", server.Host)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "PATCH %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: %d\r\n\r\n",
			location, m.token, len(data))
		half := len(data) / 2
		if _, err := conn.Write(data[:half]); err != nil {
			t.Fatal(err)
		}
		conn.Close()

		deadline := time.Now().Add(20 * time.Second)
		for m.offset(location).Header.Get("Upload-Offset") != strconv.Itoa(half) {
			if time.Now().After(deadline) {
				t.Fatalf("offset = %s, want %d", m.offset(location).Header.Get("Upload-Offset"), half)
			}
			time.Sleep(10 * time.Millisecond)
		}
		m.patch(location, half, data[half:]).checkStatus(t, "the rest", 204, "")
	})
}

// TestResumablePreflight has a page of another origin send bytes: its preflight
// request is not answered like an OPTIONS request of the protocol.
func TestResumablePreflight(t *testing.T) {
	t.Parallel()
	const app = "https://app.example"
	s := startService(t, dbtest.Open(t, dbtest.URL(t, "sqlite")), limits)
	server := s.withOrigins(app)
	res := headers(t, "OPTIONS", server.URL+resumablePath, http.Header{"Origin": {app}, "Access-Control-Request-Method": {"POST"}})
	if res.StatusCode != 204 || res.Header.Get("Tus-Version") != "" || !strings.Contains(res.Header.Get("Access-Control-Allow-Headers"), "Upload-Length") {
		t.Errorf("preflight = %d %v", res.StatusCode, res.Header)
	}
	res = headers(t, "OPTIONS", server.URL+resumablePath, http.Header{"Origin": {app}})
	if res.StatusCode != 204 || res.Header.Get("Tus-Version") != "1.0.0" || !strings.Contains(res.Header.Get("Access-Control-Expose-Headers"), "Upload-Offset") {
		t.Errorf("options = %d %v", res.StatusCode, res.Header)
	}
}
