package media_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atelier/internal/file/media"
)

// graph is what ComfyUI writes into its results: the whole workflow with the
// prompt, as JSON of tens of kilobytes.
var graph = `{"6":{"class_type":"CLIPTextEncode","inputs":{"text":"SECRET prompt","model":"SECRET.safetensors"}},"x":"` + strings.Repeat("SECRET node ", 3500) + `"}`

// chapters is a file of metadata as ffmpeg reads it.
const chapters = ";FFMETADATA1\ntitle=SECRET title\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=500\ntitle=SECRET first\n" +
	"[CHAPTER]\nTIMEBASE=1/1000\nSTART=500\nEND=1000\ntitle=SECRET second\n"

// tagged lists files that ffmpeg makes with tags, chapters and pictures of
// others. The words pic, chapters and graph stand for files and texts.
var tagged = []struct{ name, args string }{
	{"end.mp4", "VIDEO -i CHAPTERS -i PICTURE -map 0 -map 1 -map 3 -map_metadata 2 -c:v:0 libx264 -c:v:1 copy -disposition:v:1 attached_pic -c:a aac TAGS -metadata:s:v SECRETKEY=SECRET -movflags use_metadata_tags"},
	{"start.mp4", "VIDEO -i CHAPTERS -map 0 -map 1 -map_metadata 2 -c:v libx264 -c:a aac TAGS -movflags +faststart+use_metadata_tags"},
	{"itunes.mp4", "VIDEO -i CHAPTERS -i PICTURE -map 0 -map 1 -map 3 -map_metadata 2 -c:v:0 libx264 -c:v:1 copy -disposition:v:1 attached_pic -c:a aac TAGS -metadata comment=GRAPH"},
	{"fragments.mp4", "VIDEO -map 0 -map 1 -c:v libx264 -g 5 -c:a aac TAGS -movflags frag_keyframe+empty_moov+default_base_moof+use_metadata_tags"},
	{"fragments-offsets.mp4", "VIDEO -map 0 -map 1 -c:v libx264 -g 5 -c:a aac TAGS -movflags frag_keyframe"},
	{"dash.mp4", "VIDEO -map 0 -map 1 -c:v libx264 -g 5 -c:a aac TAGS -movflags dash+global_sidx+frag_keyframe+empty_moov"},
	{"subtitles.mp4", "VIDEO -i SUBTITLES -map 0 -map 1 -map 2 -c:v libx264 -c:a aac -c:s mov_text TAGS"},
	{"flac.mp4", "VIDEO -map 0 -map 1 -c:v libx264 -c:a flac -strict -2 TAGS"},
	{"mpeg4.mov", "VIDEO -i CHAPTERS -map 0 -map 1 -map_metadata 2 -c:v mpeg4 -c:a pcm_s16le -timecode 01:00:00:00 TAGS -movflags use_metadata_tags"},
	{"aac.mov", "VIDEO -i CHAPTERS -map 0 -map 1 -map_metadata 2 -c:v mjpeg -pix_fmt yuvj420p -c:a aac TAGS"},
	{"opus.webm", "VIDEO -i CHAPTERS -map 0 -map 1 -map_metadata 2 -c:v libvpx -c:a libopus TAGS -metadata:s:v title=SECRET -metadata:s:a SECRETKEY=SECRET"},
	{"vorbis.webm", "VIDEO -i CHAPTERS -map 0 -map 1 -map_metadata 2 -c:v libvpx-vp9 -c:a libvorbis TAGS -metadata:s:a title=SECRET"},
	{"live.webm", "VIDEO -map 0 -map 1 -c:v libvpx -c:a libopus TAGS -live 1"},
	{"subtitles.webm", "VIDEO -i SUBTITLES -map 0 -map 1 -map 2 -c:v libvpx -c:a libopus -c:s webvtt TAGS"},
	{"tags.mp3", "AUDIO -i PICTURE -map 0 -map 1 -c:a libmp3lame -c:v copy -disposition:v attached_pic TAGS -write_id3v1 1"},
	{"ape.mp3", "AUDIO -map 0 -c:a libmp3lame TAGS -write_apetag 1"},
	{"constant.mp3", "AUDIO -map 0 -c:a libmp3lame -b:a 64k TAGS -write_xing 0"},
	{"tags.flac", "AUDIO -i PICTURE -map 0 -map 1 -c:a flac -c:v copy -disposition:v attached_pic TAGS"},
	{"opus.ogg", "AUDIO -map 0 -c:a libopus TAGS"},
	{"vorbis.ogg", "AUDIO -map 0 -c:a libvorbis TAGS -metadata more=GRAPH"},
	{"tags.wav", "AUDIO -map 0 -c:a pcm_s16le TAGS -metadata artist=SECRET -metadata comment=GRAPH -write_bext 1 -metadata description=SECRET"},
	{"long.wav", "AUDIO -map 0 -c:a pcm_s24le TAGS -metadata comment=GRAPH -rf64 always"},
}

// ffmpeg runs ffmpeg and returns its output, without the programs' own words.
func ffmpeg(t *testing.T, args ...string) string {
	t.Helper()
	var errs strings.Builder
	c := exec.Command("ffmpeg", append([]string{"-nostdin", "-v", "error", "-y"}, args...)...)
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("ffmpeg %.200q: %v: %s", args, err, errs.String())
	}
	return string(out)
}

// makeTagged makes a file of the list in a folder and returns its bytes.
func makeTagged(t *testing.T, dir, name, args string) string {
	t.Helper()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	words := map[string][]string{
		"VIDEO":     {"-f", "lavfi", "-i", "testsrc=size=64x48:rate=25:duration=1", "-f", "lavfi", "-i", "sine=duration=1"},
		"AUDIO":     {"-f", "lavfi", "-i", "sine=duration=1"},
		"TAGS":      {"-metadata", "prompt=" + graph, "-metadata", "title=SECRET title"},
		"CHAPTERS":  {write("chapters.txt", chapters)},
		"PICTURE":   {write("cover.png", withText(pngOf(flag(40, 20))))},
		"SUBTITLES": {write("x.srt", "1\n00:00:00,000 --> 00:00:01,000\nHello\n")},
	}
	var all []string
	for _, w := range strings.Fields(args) {
		if with, ok := words[w]; ok {
			all = append(all, with...)
		} else {
			all = append(all, strings.Replace(w, "GRAPH", graph, 1))
		}
	}
	path := filepath.Join(dir, name)
	ffmpeg(t, append(all, path)...)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// withText adds a text to a PNG file.
func withText(png string) string {
	return png[:pngStart] + chunk("tEXt", "prompt\x00SECRET picture") + png[pngStart:]
}

// streams returns sums of all packets of the pictures, sounds and subtitles of
// a file, and of all that they decode to.
func streams(t *testing.T, path string) []string {
	t.Helper()
	decoded := path + ".md5"
	packets := ffmpeg(t, "-copyts", "-i", path,
		"-map", "0:V?", "-map", "0:a?", "-map", "0:s?", "-c", "copy", "-f", "framemd5", "-",
		"-map", "0:V?", "-map", "0:a?", "-f", "framemd5", decoded)
	frames, err := os.ReadFile(decoded)
	if err != nil {
		t.Fatal(err)
	}

	var all []string
	for line := range strings.Lines(packets + string(frames)) {
		// The header of Vorbis in WebM, and the data beside the first packet of
		// Vorbis in Ogg, contain comments.
		if !strings.HasPrefix(line, "#extradata") {
			line, _, _ = strings.Cut(line, ", S=")
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// probe is what ffprobe writes about a file.
type probe struct {
	Streams []struct {
		Type        string            `json:"codec_type"`
		Tags        map[string]string `json:"tags"`
		Disposition map[string]int    `json:"disposition"`
	} `json:"streams"`
	Chapters []json.RawMessage `json:"chapters"`
	Format   struct {
		Duration string            `json:"duration"`
		Tags     map[string]string `json:"tags"`
	} `json:"format"`
}

func probeFile(t *testing.T, path string) (probe, string) {
	t.Helper()
	out, err := exec.Command("ffprobe", "-v", "error", "-of", "json", "-show_format", "-show_streams", "-show_chapters", path).Output()
	if err != nil {
		t.Fatalf("ffprobe %s: %v", path, err)
	}
	var p probe
	if err := json.Unmarshal(out, &p); err != nil {
		t.Fatal(err)
	}
	return p, string(out)
}

// harmless are the tags that ffprobe may show for a clean file: those of the
// container, and the encoder in the header of an MP3 file, which players need.
var harmless = []string{"major_brand", "minor_version", "compatible_brands", "language", "encoder", "vendor_id"}

// TestForeignTagsAreRemoved makes a file of each kind with tags, chapters and
// pictures, and checks with ffprobe and exiftool that all are removed and that
// the streams are the same.
func TestForeignTagsAreRemoved(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"ffmpeg", "ffprobe"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed (apt-get install ffmpeg)")
		}
	}
	for _, tt := range tagged {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := makeTagged(t, dir, tt.name, tt.args)
			if !strings.Contains(file, "SECRET") {
				t.Fatal("the file has no foreign tag, so that none can be removed")
			}

			f, ok := sniff(file)
			if !ok {
				t.Fatal("the format is not recognised")
			}
			cleaned, err := clean(f, file)
			if err != nil {
				t.Fatal(err)
			}
			if at := strings.Index(cleaned, "SECRET"); at >= 0 {
				t.Errorf("a foreign text is left at %d of %d: %q", at, len(cleaned), cleaned[max(0, at-60):at+30])
			}
			if again, err := clean(f, cleaned); err != nil || again != cleaned {
				t.Errorf("cleaning twice changes the file, %v", err)
			}

			analyzer := media.NewAnalyzer(media.Limits{})
			before, err := examine(analyzer, f, file)
			if err != nil {
				t.Fatal(err)
			}
			after, err := examine(analyzer, f, cleaned)
			if err != nil {
				t.Fatal(err)
			}
			if after.Width != before.Width || after.Height != before.Height || after.Duration != before.Duration && tt.name != "constant.mp3" {
				t.Errorf("%dx%d, %v; before %dx%d, %v", after.Width, after.Height, after.Duration, before.Width, before.Height, before.Duration)
			}

			marked, err := mark(f, strings.NewReader(cleaned), packet)
			if err != nil || strings.Count(marked, packet) != 1 {
				t.Errorf("%d packets, want 1, %v", strings.Count(marked, packet), err)
			}
			write := func(kind, text string) string {
				path := filepath.Join(dir, kind+"-"+tt.name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			path := write("clean", cleaned)
			checkProbe(t, path, false)
			checkExif(t, path)

			path = write("marked", marked)
			checkProbe(t, path, true)
			want := streams(t, filepath.Join(dir, tt.name))
			got := streams(t, path)
			if len(got) != len(want) || len(got) < 20 {
				t.Errorf("%d lines about the streams, want %d", len(got), len(want))
			}
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("the streams differ: %q, want %q", got[i], want[i])
					break
				}
			}
		})
	}
}

func checkProbe(t *testing.T, path string, marked bool) {
	t.Helper()
	p, text := probeFile(t, path)
	if strings.Contains(text, "SECRET") || len(p.Chapters) > 0 {
		t.Errorf("ffprobe shows foreign tags or chapters: %.3000s", text)
	}
	tags := p.Format.Tags
	for _, s := range p.Streams {
		for key, value := range s.Tags {
			if !slices.Contains(harmless, key) && (!marked || !strings.EqualFold(key, "XMP")) && value != "" {
				t.Errorf("%s: ffprobe shows the tag %q of a stream: %.80q", filepath.Base(path), key, value)
			}
		}
		if s.Type == "data" || s.Disposition["attached_pic"] != 0 {
			t.Errorf("ffprobe shows a stream of data or a picture: %.3000s", text)
		}
	}
	for key, value := range tags {
		if !slices.Contains(harmless, key) && (!marked || !strings.EqualFold(key, "XMP") && key != "id3v2_priv.XMP") && value != "" {
			t.Errorf("%s: ffprobe shows the tag %q: %.80q", filepath.Base(path), key, value)
		}
	}
}

func checkExif(t *testing.T, path string) {
	t.Helper()
	tool, err := exec.LookPath("exiftool")
	if err != nil {
		t.Log("exiftool is not installed (apt-get install libimage-exiftool-perl): the tags that it shows are not checked")
		return
	}
	out, err := exec.Command(tool, "-a", "-u", "-ee", "-G1", "-s", path).CombinedOutput()
	if err != nil {
		t.Errorf("exiftool %s: %v: %s", path, err, out)
	}
	for line := range strings.Lines(string(out)) {
		for _, word := range []string{"SECRET", "Lavf", "Lavc", "Warning"} {
			if strings.Contains(line, word) && !strings.Contains(line, "LAME") && !strings.Contains(line, "ICC_Profile") { // the profile of the samples is not a real one
				t.Errorf("exiftool shows %s: %.200s", filepath.Base(path), line)
			}
		}
	}
}
