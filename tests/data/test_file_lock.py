import subprocess
import sys

import pytest

from keras_drill.data.file_lock import file_lock


@pytest.mark.slow
def test_a_killed_process_lets_go(tmp_path):
    program = (
        "import sys\n"
        "from keras_drill.data.file_lock import file_lock\n"
        "with file_lock(sys.argv[1]):\n"
        "    print('locked', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path / "lock"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "locked\n"
    with pytest.raises(BlockingIOError), file_lock(tmp_path / "lock", wait=False):
        pass
    process.kill()
    process.communicate()
    with file_lock(tmp_path / "lock", wait=False):
        pass


@pytest.mark.slow
def test_without_fcntl_the_core_works_and_the_lock_says_what_is_missing():
    program = (
        "import sys\n"
        "sys.modules['fcntl'] = None\n"
        "import keras_drill\n"
        "keras_drill.OutputLayer(7)\n"
        "try:\n"
        "    import keras_drill.data\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "POSIX file locks (`fcntl`)" in result.stdout
    assert "Received: sys.platform=" in result.stdout
