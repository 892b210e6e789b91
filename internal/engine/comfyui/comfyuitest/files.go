package comfyuitest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"atelier/internal/engine/enginetest"
)

func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, s.o.MaxUpload)
	form, err := r.MultipartReader()
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	fields := map[string]string{"type": "input"}
	var name string
	var content []byte
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		b, err := io.ReadAll(part)
		if err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		if part.FormName() == "image" {
			name = part.FileName()
			content = b
		} else {
			fields[part.FormName()] = string(b)
		}
	}
	dir := fields["type"] + "/" + fields["subfolder"]
	if name == "" || strings.Contains(dir, "..") || !known(fields["type"]) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fields["overwrite"] != "true" && fields["overwrite"] != "1" {
		stem := strings.TrimSuffix(name, path.Ext(name))
		end := path.Ext(name)
		for i := 1; ; i++ {
			before, taken := s.files[path.Join(dir, name)]
			if !taken || bytes.Equal(before, content) {
				break
			}
			name = fmt.Sprintf("%s (%d)%s", stem, i, end)
		}
	}
	s.files[path.Join(dir, name)] = content
	reply(w, 200, dict{"name": name, "subfolder": fields["subfolder"], "type": fields["type"]})
}

func known(folder string) bool { return folder == "input" || folder == "temp" || folder == "output" }

// input returns the content of the uploaded file called name.
func (s *Server) input(name string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.files[path.Join("input", name)]
	return b, ok
}

// save stores a file. As with all nodes that save files, its name ends with a
// number that is higher than the numbers of all files with the same prefix in
// the folder.
func (s *Server) save(kind, prefix, end string, content []byte) dict {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, stem := path.Split(prefix)
	dir = strings.Trim(dir, "/")
	highest := 0
	for there := range s.files {
		var n int
		rest, ok := strings.CutPrefix(there, path.Join(kind, dir, stem)+"_")
		if _, err := fmt.Sscanf(rest, "%05d_", &n); ok && err == nil {
			highest = max(highest, n)
		}
	}
	name := fmt.Sprintf("%s_%05d_%s", stem, highest+1, end)
	s.files[path.Join(kind, dir, name)] = content
	return dict{"filename": name, "subfolder": dir, "type": kind}
}

func (s *Server) view(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name := q.Get("filename")
	kind := q.Get("type")
	if kind == "" {
		kind = "output"
	}
	if name == "" || strings.HasPrefix(name, "/") || strings.Contains(name, "..") || !known(kind) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	content, ok := s.files[path.Join(kind, q.Get("subfolder"), path.Base(name))]
	fault := s.faults.View
	s.mu.Unlock()
	if !ok || fault == "missing" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Disposition", fmt.Sprintf("filename=%q", name))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch fault {
	case "breaks":
		enginetest.SendTruncated(w, content)
	case "floods":
		enginetest.SendEndless(w, r, "")
	case "drips":
		enginetest.SendSlowly(w, r, content)
	default:
		_, _ = w.Write(content)
	}
}
