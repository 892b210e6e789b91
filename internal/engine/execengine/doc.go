// Package execengine is an engine that runs a program of the operator's for each
// job: a script, a model's own command line, anything that can read JSON and
// write files.
//
// # What the program gets
//
// It is started with the arguments of the settings, in a folder that is made
// for this job and removed after it. The folder is its working directory, its
// HOME and its TMPDIR. It has two sub-folders: in/ with the media inputs and
// out/, empty, for results. On standard input comes one JSON object:
//
//	{
//	  "run_id": "…", "attempt": 1,          together different for every start
//	  "seed": 7,                            all that is random follows from it
//	  "num_results": 2,                     how many results are wanted
//	  "output": {"type": "IMG", "mime_types": ["image/png"]},
//	  "with": {…},                          engine.with of the manifest, as it is
//	  "values": {"prompt": "a fox"},        the inputs; those left out are absent
//	  "files": {"picture": [
//	    {"path": "in/picture-1.png", "mime_type": "image/png",
//	     "size": 4711, "width": 640, "height": 480}
//	  ]},
//	  "folder": "/…"                        the working directory
//	}
//
// width and height are absent where a file has none. Values come from whoever
// may start runs: programs must not hand them to a shell. The environment holds
// PATH, HOME, TMPDIR, LANG and what the settings name, and nothing else of ours.
//
// # What it says
//
// Lines of standard output that are JSON objects are news. Each has one of:
//
//	{"progress": 0.5}                how much is done, from 0 to 1
//	{"preview": "preview.jpg"}       a JPEG or PNG of at most 1 MiB to show
//	{"output": "out/1.png"}          a finished result, which is taken now
//	{"error": {"message": "…", "code": "ENGINE_FAILED", "transient": false}}
//
// Names are those of files in the folder; a result whose name was told before is
// the same one, and not taken again. Other lines are dropped, and lines end at
// 64 KiB. While a result is taken the program waits when it writes more.
// The codes are ENGINE_FAILED, ENGINE_UNAVAILABLE, which counts as transient
// unless it says otherwise, and CONTENT_POLICY_VIOLATION. The message is shown
// to the person who started the run, without the paths and addresses in it.
//
// Standard error goes nowhere; its end is in the log where the program fails.
//
// # How it ends
//
// With exit code 0, files in out/ that were not announced are taken in the order
// of their names, so 01.png comes before 02.png; hidden ones and sub-folders
// stay. What is more than num_results is not taken. With another exit code, or
// after an error in the news, the run fails with that error, or a general one.
// Results that were taken before stay taken.
//
// When the run is cancelled or out of time, or the program goes over a limit, it
// is killed with all that it started. Nothing may go on after its end.
//
// # An example
//
// With command: ["/usr/bin/python3", "/opt/tools/paint.py"] in the settings:
//
//	import json, sys
//	from paint import paint # whatever makes pictures
//
//	job = json.load(sys.stdin)
//	for n in range(job["num_results"]):
//	    name = f"out/{n + 1:02}.png"
//	    paint(job["values"]["prompt"], seed=job["seed"] + n).save(name)
//	    print(json.dumps({"output": name}), flush=True)
//	    print(json.dumps({"progress": (n + 1) / job["num_results"]}), flush=True)
package execengine
