package video_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"atelier/internal/engine/builtin/video"
	"atelier/internal/engine/enginetest"
)

// script writes a program of the shell that stands for one of FFmpeg's. In it,
// $real is the real ffmpeg and $pid a file to tell the process by.
func script(t *testing.T, body string) (path, pid string) {
	t.Helper()
	ffmpeg, _ := programs(t)
	dir := t.TempDir()
	path, pid = filepath.Join(dir, "program"), filepath.Join(dir, "pid")
	text := "#!/bin/sh\nreal='" + ffmpeg + "'\npid='" + pid + "'\n" + body + "\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path, pid
}

// faulty has a program instead of ffmpeg, of ffprobe, or of both.
func faulty(ffmpeg, ffprobe string) func(t *testing.T) enginetest.Trial {
	return func(t *testing.T) enginetest.Trial {
		realFFmpeg, realFFprobe := programs(t)
		tr := enginetest.Trial{Job: cases(t)["pan-zoom"]}
		if ffprobe != "" {
			realFFprobe, _ = script(t, ffprobe)
		}
		if ffmpeg != "" {
			var pid string
			realFFmpeg, pid = script(t, ffmpeg)
			tr.Idle = func() bool {
				b, err := os.ReadFile(pid)
				n, bad := strconv.Atoi(strings.TrimSpace(string(b)))
				return err != nil || bad != nil || syscall.Kill(n, 0) != nil
			}
		}
		tr.Engine = video.New(realFFmpeg, realFFprobe, video.Options{Folder: t.TempDir(), File: 8 << 20})
		return tr
	}
}

// Not parallel: the suite counts goroutines.
func TestFaults(t *testing.T) {
	programs(t)
	enginetest.CheckFaults(t, map[enginetest.Fault]func(t *testing.T) enginetest.Trial{
		enginetest.Refuses:  faulty("", `echo "http://127.0.0.1/ /tmp/x: invalid" >&2; exit 1`),
		enginetest.Fails:    faulty(`echo "Conversion failed! /tmp/secret" >&2; exit 1`, ""),
		enginetest.Loses:    faulty(`kill -9 $$`, ""),
		enginetest.Garbles:  faulty("", `echo '<html>'`),
		enginetest.Breaks:   faulty(`"$real" "$@" && [ -f result.mp4 ] && head -c 2500 result.mp4 > half && mv half result.mp4; exit 0`, ""),
		enginetest.Floods:   faulty(`echo $$ > "$pid"; exec cat /dev/zero > plain-0.ppm`, ""),
		enginetest.Drips:    faulty(`echo $$ > "$pid"; while :; do echo out_time_us=1000; sleep 0.1; done`, ""),
		enginetest.Hangs:    faulty(`echo $$ > "$pid"; exec sleep 600`, ""),
		enginetest.TimeIsUp: faulty(`echo $$ > "$pid"; sleep 600 & wait`, ""),
		enginetest.Fewer:    faulty(`exit 0`, ""),
		enginetest.Away: func(t *testing.T) enginetest.Trial {
			none := filepath.Join(t.TempDir(), "none")
			return enginetest.Trial{Engine: video.New(none, none, video.Options{Folder: t.TempDir()}), Job: cases(t)["pan-zoom"]}
		},
	}, map[enginetest.Fault]string{
		enginetest.Busy:     "a program on this machine takes every job",
		enginetest.Restarts: "a program that ended does not come back",
	})
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	ffmpeg, ffprobe := programs(t)
	dir := t.TempDir()
	e := video.New(ffmpeg, ffprobe, video.Options{Folder: dir})
	var r enginetest.Recorder
	if err := e.Run(t.Context(), cases(t)["video-to-gif"], &r); err != nil {
		t.Fatal(err)
	}
	bad := cases(t)["video-to-gif"]
	bad.Files = videoInput(enginetest.FileFromBytes("video/mp4", []byte("no video")))
	if err := e.Run(t.Context(), bad, &r); err == nil {
		t.Fatal("run = nil, want an error")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left = %v, %v; want an empty folder", left, err)
	}
}

// TestEveryInputIsGuarded looks at what ffmpeg and ffprobe are called with.
func TestEveryInputIsGuarded(t *testing.T) {
	t.Parallel()
	ffmpeg, ffprobe := programs(t)
	log := filepath.Join(t.TempDir(), "log")
	spy := func(real string) string {
		path, _ := script(t, `for a in "$@"; do printf '%s\0' "$a"; done >> '`+log+`'; printf '\0\0' >> '`+log+`'; exec '`+real+`' "$@"`)
		return path
	}
	e := video.New(spy(ffmpeg), spy(ffprobe), video.Options{Folder: t.TempDir()})
	for name, j := range cases(t) {
		if err := e.Run(t.Context(), j, &enginetest.Recorder{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	f := clip(t)
	r, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.FirstFrame(t.Context(), f.MimeType, r); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	inputs := 0
	for call := range strings.SplitSeq(strings.TrimSuffix(string(b), "\x00\x00\x00"), "\x00\x00\x00") {
		args := strings.Split(call, "\x00")
		for len(args) > 0 {
			at := slices.Index(args, "-i")
			if at < 0 {
				break
			}
			guard := map[string]string{}
			for i := range at - 1 {
				guard[args[i]] = args[i+1]
			}
			name := args[at+1]
			if guard["-protocol_whitelist"] != "file" || guard["-f"] == "" || guard["-f"] != guard["-format_whitelist"] || guard["-codec_whitelist"] == "" {
				t.Errorf("%s is read with %v", name, args[:at])
			}
			if plain, ok := strings.CutPrefix(name, "file:"); !ok || strings.ContainsAny(plain, "/%:") {
				t.Errorf("an input called %s", name)
			}
			inputs++
			args = args[at+2:]
		}
	}
	if inputs < 20 {
		t.Errorf("inputs = %d, want those of all operations", inputs)
	}
	if !strings.Contains(cmp.Or(string(b), "-"), "-map_metadata\x00-1") {
		t.Error("metadata may stay in results")
	}
}
