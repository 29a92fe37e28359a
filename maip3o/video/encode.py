"""Frames to mp4 (H.264) and gif by the ffmpeg that imageio-ffmpeg brings along: no system ffmpeg, no GPU."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import cv2
import imageio_ffmpeg

from maip3o.errors import RunError
from maip3o.video.frames import FPS
from maip3o.video.text import Image


def write_mp4(path: Path, frames: Iterable[Image], fps: int = FPS) -> int:
    """Encode frames [height, width, 3] RGB of even size; returns how many. The file appears when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.tmp.mp4")
    encoder: subprocess.Popen[bytes] | None = None
    count = 0
    try:
        for frame in frames:
            if encoder is None:
                encoder = _start(temporary, frame.shape[1], frame.shape[0], fps)
            assert encoder.stdin is not None
            # Half the bytes through the pipe, and OpenCV converts faster than ffmpeg's scaler.
            encoder.stdin.write(cv2.cvtColor(frame, cv2.COLOR_RGB2YUV_I420).data)
            count += 1
        if encoder is None:
            raise RunError(f"{path}: no frame to encode")
        _finish(encoder, path)
        temporary.replace(path)
    except BrokenPipeError:
        assert encoder is not None
        _finish(encoder, path)
        raise
    finally:
        if encoder is not None and encoder.poll() is None:
            encoder.kill()
            encoder.wait()
        temporary.unlink(missing_ok=True)
    return count


def _start(path: Path, width: int, height: int, fps: int) -> subprocess.Popen[bytes]:
    source = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", f"{width}x{height}", "-r", str(fps), "-i", "pipe:0"]
    # Most of a frame stands still: a shallow search loses no quality here, and halves the encoder's time.
    shallow = "rc-lookahead=5:bframes=1:ref=1:subme=1:weightp=0"
    codec = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "21", "-x264-params", shallow, "-g", str(4 * fps)]
    colour = ["-pix_fmt", "yuv420p", "-color_range", "tv", "-colorspace", "smpte170m", "-movflags", "+faststart"]
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-v", "error", *source, *codec, *colour, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)


def _finish(encoder: subprocess.Popen[bytes], path: Path) -> None:
    _, errors = encoder.communicate()
    if encoder.returncode:
        raise RunError(f"{path}: ffmpeg failed: {errors.decode(errors='replace').strip()[:300]}")


def write_gif(video: Path, path: Path, width: int = 640, fps: int = 12) -> None:
    """A gif of an mp4, with a palette of its own."""
    reduce = f"fps={fps},scale={width}:-2:flags=lanczos"
    palette = (
        "split[a][b];[a]palettegen=max_colors=128:stats_mode=diff[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
    )
    command = [
        imageio_ffmpeg.get_ffmpeg_exe(),
        "-y",
        "-v",
        "error",
        "-i",
        str(video),
        "-vf",
        f"{reduce},{palette}",
        str(path),
    ]
    outcome = subprocess.run(command, capture_output=True, check=False)
    if outcome.returncode:
        raise RunError(f"{path}: ffmpeg failed: {outcome.stderr.decode(errors='replace').strip()[:300]}")
