package catalog

import (
	"fmt"
	"regexp"
	"strconv"

	"atelier/internal/base/ids"
)

// RefKind is how a media input names its file.
type RefKind string

// The kinds of the interface.
const (
	Multipart  RefKind = "MULTIPART"
	UploadRef  RefKind = "UPLOAD_REF"
	LibraryRef RefKind = "LIBRARY_REF"
)

// refDetail is what each kind has beside its kind.
var refDetail = map[RefKind]string{Multipart: "file_index", UploadRef: "id", LibraryRef: "id"}

// What is said of a reference to nothing. Whoever looks for the file says the
// same, so that nobody learns which ids have the shape of real ones, or which
// are somebody else's.
const (
	NoSuchUpload      = "There is no such upload."
	NoSuchLibraryItem = "There is no such library item."
)

// Ref is a file that an input names.
type Ref struct {
	Kind      RefKind
	ID        string // of UPLOAD_REF and LIBRARY_REF
	FileIndex int    // of MULTIPART

	Field  string   // key of the leaf
	List   bool     // the leaf takes several
	Place  int      // within the list
	Path   string   // "inputs.pictures.2", for problems found later
	Accept []string // mime types the leaf takes; empty: all of its Media
	Media  string   // what the leaf takes, as one of the output types
}

// mediaOf is what each type of leaf takes.
var mediaOf = map[FieldType]string{"IMG": "IMG", "IMGS": "IMG", "VIDEO": "VID", "AUDIO": "AUDIO", "ASSET_3D": "ASSET_3D"}

// libraryIDPattern is the shape of a result's id: its run's, then its own.
var libraryIDPattern = regexp.MustCompile(`^[0-9A-Za-z]{20}:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func (f *inputParser) parseReferences(l *Field, path string, value any) {
	list, ok := value.([]any)
	if !ok {
		f.addProblem(path, "Must be a list of references.")
		return
	}
	if limit := l.Display.MaxItems; limit > 0 && int64(len(list)) > limit {
		f.addProblem(path, fmt.Sprintf("Must have at most %d references.", limit))
	}
	for i, item := range list {
		f.parseReference(l, path+"."+strconv.Itoa(i), i, item)
	}
}

func (f *inputParser) parseReference(l *Field, path string, place int, value any) {
	given, ok := value.(map[string]any)
	if !ok {
		f.addProblem(path, toSentence(l.Problem(value)))
		return
	}
	kind, _ := given["kind"].(string)
	r := Ref{
		Kind:   RefKind(kind),
		Field:  l.Key,
		List:   l.Type == "IMGS",
		Place:  place,
		Path:   path,
		Accept: l.Display.Accept,
		Media:  mediaOf[l.Type],
	}
	detail, known := refDetail[r.Kind]
	if !known {
		f.addProblem(path, "The kind of a reference must be MULTIPART, UPLOAD_REF or LIBRARY_REF.")
		return
	}
	for _, name := range sortedKeys(given) {
		if name != "kind" && name != detail {
			f.addProblem(path+"."+printableName(name), "A reference of this kind has no such name.")
		}
	}
	var wrong string
	if r.Kind == Multipart {
		r.FileIndex, wrong = f.claimFilePart(given[detail])
	} else {
		r.ID, wrong = refID(r.Kind, given[detail])
	}
	if wrong != "" {
		f.addProblem(path, wrong)
		return
	}
	f.Refs = append(f.Refs, r)
}

// claimFilePart takes a file part, which is taken once.
func (f *inputParser) claimFilePart(index any) (i int, wrong string) {
	if f.Draft {
		return 0, "Files are sent with the run itself; leave this input out here."
	}
	n, ok := toInteger(index)
	switch {
	case !ok:
		return 0, "The file_index of a reference must be a whole number."
	case n < 0 || n >= int64(f.Files):
		return 0, "There is no such file part."
	case f.claimedParts[n]:
		return 0, "This file part is used twice."
	}
	f.claimedParts[n] = true
	return int(n), ""
}

func refID(kind RefKind, id any) (s, wrong string) {
	s, _ = id.(string)
	switch {
	case kind == UploadRef && !ids.Valid(s):
		return "", NoSuchUpload
	case kind == LibraryRef && !libraryIDPattern.MatchString(s):
		return "", NoSuchLibraryItem
	}
	return s, ""
}
