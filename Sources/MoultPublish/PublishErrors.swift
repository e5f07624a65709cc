internal import MoultBasics
