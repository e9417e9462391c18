"""``python -m mrcr_action`` is the command ``mrcr``."""

import sys

from mrcr_action.cli import main

sys.exit(main())
